"""Where the file of a report lies: on this machine, in the folder of the service, or in a bucket."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headrace import InvalidInputError
from headrace.apps.report.errors import UnreadableFileError
from headrace.apps.report.opening import app
from headrace.apps.report.requests import check_reference
from headrace.apps.report.sources import find_source, local_file, source_of
from headrace.blobs.s3 import S3Blobs
from headrace.report_settings import ReportSettings
from headrace.workflow_settings import BlobSettings
from tests.backends.s3 import new_site
from tests.unit.engine_app import QUICK
from tests.unit.report_files import xlsx


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder that callers of the service may name."""
    folder = tmp_path / "files"
    folder.mkdir()
    monkeypatch.setitem(app.__dict__, "settings", replace(QUICK, report=ReportSettings(files=folder)))
    return folder


async def test_a_file_that_changed_since_is_refused(reports: Path, tmp_path: Path) -> None:
    """While the report goes on it must be what it was; its name alone says nothing."""
    path = xlsx(tmp_path / "cases.xlsx")
    source = source_of(str(path))
    async with local_file(source) as same:
        assert same == path
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(UnreadableFileError, match="changed after the report was begun"):
        async with local_file(source):
            pass
    path.unlink()
    with pytest.raises(UnreadableFileError, match="cannot be read"):
        async with local_file(source):
            pass


@pytest.mark.parametrize(
    "name", ["", "..", "../cases.xlsx", "/etc/passwd", "a\\b.xlsx", ".hidden.xlsx", "~$cases.xlsx", "a\0b", "x" * 201]
)
def test_names_of_the_folder_lead_nowhere_else(name: str, reports: Path) -> None:
    """Neither up nor to hidden files."""
    with pytest.raises(InvalidInputError, match="must be the name of a file"):
        source_of(f"file:{name}")


async def test_files_of_the_folder_are_named_and_links_out_of_it_are_not_followed(
    reports: Path, tmp_path: Path
) -> None:
    """The reference stays a name, so that workers on other machines find it in their folder."""
    path = xlsx(reports / "用例 1.xlsx")
    source = source_of("file:用例 1.xlsx")
    assert (source["ref"], source["name"], source["size"]) == ("file:用例 1.xlsx", path.name, path.stat().st_size)
    async with local_file(source) as found:
        assert found.resolve() == path.resolve()
    (reports / "out.xlsx").symlink_to(xlsx(tmp_path / "secret.xlsx"))
    with pytest.raises(InvalidInputError, match="leads out of the folder"):
        source_of("file:out.xlsx")
    with pytest.raises(UnreadableFileError, match=r"file:no\.xlsx cannot be read"):
        source_of("file:no.xlsx")


async def test_objects_of_the_bucket_are_fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And what is not there, or in another bucket, is told as a file that cannot be read."""
    site = new_site()
    told = BlobSettings(
        type="s3", bucket=site.bucket, endpoint=site.endpoint, access_key=site.access_key, secret_key=site.secret_key
    )
    monkeypatch.setitem(app.__dict__, "settings", replace(QUICK, blob_storage=told))
    path = xlsx(tmp_path / "cases.xlsx")
    await S3Blobs(site).put_blob("in/7/cases.xlsx", path.read_bytes())
    async with app:
        source = await find_source(f"s3://{site.bucket}/in/7/cases.xlsx")
        assert source["name"] == "cases.xlsx"
        async with local_file(source) as found:
            assert (found.name, found.read_bytes()) == ("cases.xlsx", path.read_bytes())
        assert not found.exists()
        await S3Blobs(site).put_blob("in/7/cases.xlsx", b"something else")
        with pytest.raises(UnreadableFileError, match="changed after the report was begun"):
            async with local_file(source):
                pass
        await S3Blobs(site).put_blob("store/runs/cases.xlsx", b"of a run")
        for ref in (
            f"s3://{site.bucket}/store/runs/cases.xlsx",
            f"s3://{site.bucket}/in/8/cases.xlsx",
            "s3://other/cases.xlsx",
        ):
            with pytest.raises(UnreadableFileError, match="cannot be read"):
                await find_source(ref)


@pytest.mark.parametrize(
    "ref", ["s3://bucket/..", "s3://bucket/a\0.xlsx", "s3://bucket/.x", "s3://bucket/" + "x" * 300]
)
def test_an_object_must_have_the_name_of_a_file(ref: str) -> None:
    """It is written under that name while it is read."""
    with pytest.raises(InvalidInputError, match="the name of a file"):
        source_of(ref)


def test_callers_of_the_service_name_no_path() -> None:
    """Only files of the folder and objects."""
    check_reference("file:cases.xlsx")
    check_reference("s3://bucket/cases.xlsx")
    for ref in ("/etc/passwd", "cases.xlsx", "http://host/cases.xlsx", "FILE:x"):
        with pytest.raises(InvalidInputError, match="must begin with file: or s3://"):
            check_reference(ref)
