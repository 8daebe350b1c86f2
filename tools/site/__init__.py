"""Make and check the site of the documents."""
