-- Why a slice was not appended: the state of its batch, and the slice stored under its first ordinal.
-- Locks: none. Index: both primary keys.
SELECT b.state, s.count, s.hash FROM {schema}.batches AS b
LEFT JOIN {schema}.batch_slices AS s ON s.batch_id = b.id AND s.first_ordinal = %(first)s::int
WHERE b.id = %(batch_id)s
