"""The dashboard: pages that show what the system does, and live parts of them. It knows no framework of HTTP.

A page is one function that asks the queries which command line and HTTP API share, and one template. Blocks of a
template whose names begin with `live_` are rendered anew while somebody watches, and sent where they changed.
"""
