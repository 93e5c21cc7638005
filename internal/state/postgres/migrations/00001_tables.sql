-- A name (of a key, a log or a record) has up to 16 KiB, which no index takes. It is kept in two parts: head, its first
-- 512 bytes, and tail, the rest. Ordered by head and then tail, names are in the order of their bytes. Hash is the
-- SHA-256 of the tail, empty for an empty tail: head and hash make a name unique. Sum is the CRC-32C of name and data.

CREATE SEQUENCE versions;

CREATE TABLE meta (
    name  text PRIMARY KEY,
    value text NOT NULL
);

INSERT INTO meta (name, value) VALUES ('identity', gen_random_uuid()::text), ('incarnation', '1');

-- One row for each host that serves. Ends is when others may delete it; the host renews it. Each commit of the host
-- locks the row, and is refused without it. A host that looks for other ones locks the row of meta that has the
-- identity first. Alone is set when no other host may serve beside this one.
CREATE TABLE sessions (
    id      bytea PRIMARY KEY,
    alone   boolean NOT NULL,
    host    text NOT NULL,
    pid     bigint NOT NULL,
    version text NOT NULL,
    began   timestamptz NOT NULL DEFAULT now(),
    ends    timestamptz NOT NULL
);

-- One row for each space that holds something. It is locked by every batch that writes to the space.
CREATE TABLE spaces (
    space bytea PRIMARY KEY,
    used  bigint NOT NULL
);

CREATE TABLE kv (
    space   bytea NOT NULL,
    head    bytea NOT NULL,
    hash    bytea NOT NULL,
    tail    bytea NOT NULL,
    version bigint NOT NULL,
    data    bytea NOT NULL,
    sum     bigint NOT NULL,
    PRIMARY KEY (space, head, hash)
);

-- The entries of a log are always 1 to last; bytes is the sum of their lengths.
CREATE TABLE logs (
    space bytea NOT NULL,
    head  bytea NOT NULL,
    hash  bytea NOT NULL,
    tail  bytea NOT NULL,
    id    bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    last  bigint NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (space, head, hash)
);

CREATE TABLE entries (
    log  bigint NOT NULL,
    seq  bigint NOT NULL,
    data bytea NOT NULL,
    sum  bigint NOT NULL,
    PRIMARY KEY (log, seq)
);

-- Tbl is the name of the host's table; one of more than 255 bytes is cut and has its SHA-256 at the end.
CREATE TABLE records (
    tbl  bytea NOT NULL,
    head bytea NOT NULL,
    hash bytea NOT NULL,
    tail bytea NOT NULL,
    data bytea NOT NULL,
    sum  bigint NOT NULL,
    PRIMARY KEY (tbl, head, hash)
);

-- One row for each commit of the last day: after a lost connection it tells whether the commit happened. A row that is
-- marked lost was written by the host that asked: the commit did not happen, and never will.
CREATE TABLE commits (
    token bytea PRIMARY KEY,
    lost  boolean NOT NULL DEFAULT false,
    at    timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX commits_at ON commits (at);
