"""The release before this one, as an archive of its code, and this one work on one database.

`previous_release.tar.gz` is made when a release is cut, from its tag:

    git archive TAG -- src/headrace ':!src/headrace/'{apps,bench,testing,service,dashboard} | gzip -9n

It must not be made anew in between: the schema of the release that people run is what matters.
"""
