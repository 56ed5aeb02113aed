package sqlstore

// What every dialect says in the same words.
//
// The lookups take an override by the whole of its key, the generation included,
// which a sub-select names: joins were seen to be planned with a part of the key.
// An empty URL is asked for by its length, since an empty text and an empty blob
// are different values to SQLite.
const (
	resolve = `
SELECT c.url, c.since,
  (SELECT o.url FROM {override} o WHERE o.client = c.id AND o.gen = c.gen AND o.entity = @entity),
  (SELECT o.since FROM {override} o WHERE o.client = c.id AND o.gen = c.gen AND o.entity = @entity)
FROM {client} c WHERE c.id = @client`

	// list begins with the row of the client, whose name stands in the column of the
	// entities to give the column its type.
	list = `
SELECT 0 AS part, id AS entity, url, since FROM {client} WHERE id = @client
UNION ALL
SELECT 1, p.entity, p.url, p.since FROM (
  SELECT entity, url, since FROM {override}
  WHERE client = @client AND gen = (SELECT gen FROM {client} WHERE id = @client) AND entity > @after
  ORDER BY entity LIMIT @limit) p
ORDER BY part, entity`

	// drop is what an unset does where there is no base to be kept out by a
	// tombstone. It comes after touch, in the same transaction.
	drop = `
DELETE FROM {override} WHERE client = @client AND entity = @entity
AND gen = (SELECT gen FROM {client} WHERE id = @client AND length(url) = 0)`

	// await changes nothing, but waits for those who change the client. By then remark
	// sees who that was.
	await  = `UPDATE {client} SET swept = swept WHERE id = @client`
	remark = `UPDATE {client} SET mark = @next WHERE id = @client AND mark = @mark`

	version  = `SELECT version FROM {schema} WHERE id = 1`
	versions = `SELECT id, mark FROM {client} WHERE id IN (@ids)`
)

// The sweep finds rows by ranges of the key alone, so that what is left does not
// slow it down. No row is ever added to a generation that is not the client's
// latest, so the ranges cannot grow meanwhile.
const (
	dirty = `
SELECT id, gen FROM {client} WHERE id > @after AND swept < gen ORDER BY id LIMIT @limit`

	lowest = `
SELECT MIN(gen) FROM {override} WHERE client = @client AND gen < @gen`

	bound = `
SELECT entity FROM {override} WHERE client = @client AND gen = @gen ORDER BY entity LIMIT 1 OFFSET @skip`

	purge = `
DELETE FROM {override} WHERE client = @client AND gen = @gen AND entity <= @bound`

	purgeAll = `
DELETE FROM {override} WHERE client = @client AND gen = @gen`

	swept = `
UPDATE {client} SET swept = @gen WHERE id = @client AND swept < @gen`
)
