"""The adapters of the blob store port: memory, a folder, S3 and what speaks its protocol. Nothing is imported early."""
