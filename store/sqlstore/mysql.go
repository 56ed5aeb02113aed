package sqlstore

// mySQL repeats parameters where the new row could be named: MySQL and MariaDB
// have no way of naming it in common that neither deprecates.
var mySQL = grammar{
	name: "MySQL",
	schema: []string{
		`CREATE TABLE IF NOT EXISTS {schema} (
  id INT NOT NULL PRIMARY KEY,
  version INT NOT NULL) ENGINE=InnoDB`,
		`CREATE TABLE IF NOT EXISTS {client} (
  id VARBINARY(1024) NOT NULL PRIMARY KEY,
  gen BIGINT NOT NULL,
  swept BIGINT NOT NULL,
  url BLOB NOT NULL,
  since BIGINT NOT NULL,
  mark BIGINT NOT NULL) ENGINE=InnoDB`,
		`CREATE TABLE IF NOT EXISTS {override} (
  client VARBINARY(1024) NOT NULL,
  gen BIGINT NOT NULL,
  entity VARBINARY(1024) NOT NULL,
  url BLOB NOT NULL,
  since BIGINT NOT NULL,
  PRIMARY KEY (client, gen, entity)) ENGINE=InnoDB`,
		`INSERT IGNORE INTO {schema} (id, version) VALUES (1, 1)`,
	},
	lock: lockMySQL,
	touch: `
INSERT INTO {client} (id, gen, swept, url, since, mark) VALUES (@client, 0, 0, '', 0, @mark)
ON DUPLICATE KEY UPDATE mark = @mark`,
	put: `
INSERT INTO {override} (client, gen, entity, url, since)
SELECT id, gen, @entity, @url, @since FROM {client} WHERE id = @client
ON DUPLICATE KEY UPDATE url = @url, since = @since`,
	tombstone: `
INSERT INTO {override} (client, gen, entity, url, since)
SELECT id, gen, @entity, @url, @since FROM {client} WHERE id = @client AND length(url) > 0
ON DUPLICATE KEY UPDATE url = @url, since = @since`,
	setAll: `
INSERT INTO {client} (id, gen, swept, url, since, mark) VALUES (@client, 1, 1, @url, @since, @mark)
ON DUPLICATE KEY UPDATE gen = gen + 1, url = @url, since = @since, mark = @mark`,
	classify: classifyMySQL,
}
