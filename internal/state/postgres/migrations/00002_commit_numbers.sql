-- The number of a commit, greater than that of every commit which had ended before it began. Hosts remember the
-- greatest one that they saw, with its token: a database without it has lost commits.
ALTER TABLE commits ADD COLUMN number bigint GENERATED ALWAYS AS IDENTITY;
CREATE UNIQUE INDEX commits_number ON commits (number);
