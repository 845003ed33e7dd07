"""Train, validation and test: 80, 10 and 10 % by hash, so that a text has the same split in every run and every version."""

import hashlib

SPLITS = ("train", "validation", "test")


def split_of(kind: str, text: str) -> str:
    """The split of a text of a kind; spelling with other capitals is the same text."""
    digest = hashlib.blake2b(f"{kind}:{text.casefold()}".encode(), digest_size=4).digest()
    bucket = int.from_bytes(digest, "little") % 10
    return "test" if bucket == 0 else "validation" if bucket == 1 else "train"
