-- The raw single insert.
INSERT INTO jobs (id, args) VALUES ($1::uuid, $2::json)
