-- Form 1. Columns are named for people: everything the server stores can be read with any SQLite
-- shell, through the views below. Changing a row by hand breaks its chain, and is found.

CREATE TABLE teams (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL          -- microseconds since 1970, UTC
) STRICT;

-- The logs of all teams. The key is both numbers in one: rows of a team lie side by side in the
-- table itself, so there is no second index to write, and a row may be four times as long before it
-- needs a page of its own as it could be in a table WITHOUT ROWID.
CREATE TABLE log (
  place INTEGER PRIMARY KEY,           -- team * 2^40 + seq
  team INTEGER GENERATED ALWAYS AS (place >> 40) VIRTUAL REFERENCES teams (id),
  seq INTEGER GENERATED ALWAYS AS (place & 1099511627775) VIRTUAL,
  at INTEGER NOT NULL,                 -- microseconds since 1970, UTC; never runs backwards
  actor TEXT NOT NULL,
  kind TEXT NOT NULL,
  schema INTEGER NOT NULL,
  chain BLOB NOT NULL,                 -- SHA-256 of the row before's chain and this row
  request_id TEXT,
  request_digest BLOB,
  answer TEXT,
  body TEXT NOT NULL                   -- JSON
) STRICT;

-- Settles repeated requests. Ids first: they are made in the order of time, so that all teams write
-- to the end of one index instead of into a page each.
CREATE INDEX log_requests ON log (request_id, actor) WHERE request_id IS NOT NULL;

CREATE TABLE credentials (
  hash BLOB PRIMARY KEY,               -- SHA-256 of the token
  team INTEGER NOT NULL REFERENCES teams (id),
  member TEXT NOT NULL,
  issued_at INTEGER NOT NULL,
  revoked_at INTEGER,
  seal BLOB NOT NULL                   -- SHA-256 of the other columns
) STRICT, WITHOUT ROWID;

-- For people ------------------------------------------------------------------------------------

CREATE VIEW events AS
SELECT teams.name AS team, log.seq,
       strftime('%Y-%m-%dT%H:%M:%S', log.at / 1000000, 'unixepoch')
         || printf('.%06dZ', log.at % 1000000) AS at,
       log.actor, log.kind, log.body
FROM log JOIN teams ON teams.id = log.team;

-- The members of each team, by its newest charter.
CREATE VIEW members AS
SELECT charter.team, member.key AS member, member.value ->> '$.kind' AS kind,
       member.value ->> '$.about' AS about, member.value ->> '$.emails' AS emails
FROM (SELECT team, body, max(seq) FROM events WHERE kind = 'charter-adopted' GROUP BY team) AS charter,
     json_each(charter.body, '$.charter.members') AS member;

-- Every version that was proposed.
CREATE VIEW versions AS
WITH withdrawals AS (
  SELECT team, body ->> '$.proposal' AS proposal, body ->> '$.version' AS version, max(seq) AS seq
  FROM events WHERE kind = 'withdrawn' GROUP BY 1, 2, 3
), proposed AS (
  SELECT team, seq, at, body,
         body ->> '$.proposal' AS proposal, body ->> '$.version' AS version
  FROM events WHERE kind = 'proposed'
)
SELECT p.team, p.proposal, p.version, p.body ->> '$.producer' AS producer,
       p.body ->> '$.artifact.kind' AS artifact, p.body ->> '$.artifact.digest' AS digest,
       p.body ->> '$.summary' AS summary, p.body ->> '$.round' AS round,
       w.seq IS NOT NULL AS withdrawn, p.seq, p.at
FROM proposed AS p LEFT JOIN withdrawals AS w USING (team, proposal, version);

-- Each proposal with its current version and how far it is: delivered, withdrawn, complete, published.
CREATE VIEW proposals AS
WITH completed AS (
  SELECT e.team, e.seq, e.body ->> '$.circle' AS circle,
         entry.value ->> '$.proposal' AS proposal, entry.value ->> '$.version' AS version
  FROM events AS e, json_each(e.body, '$.entries') AS entry WHERE e.kind = 'circle-completed'
), published AS (
  SELECT team, body ->> '$.circle' AS circle, max(seq) AS seq
  FROM events WHERE kind = 'circle-published' GROUP BY 1, 2
), reopened AS (
  SELECT team, body ->> '$.circle' AS circle, max(seq) AS seq
  FROM events WHERE kind = 'circle-reopened' GROUP BY 1, 2
), done AS (
  SELECT c.team, c.proposal, c.version, c.circle, max(c.seq) AS completed, p.seq AS published
  FROM completed AS c
    LEFT JOIN published AS p ON p.team = c.team AND p.circle = c.circle AND p.seq > c.seq
    LEFT JOIN reopened AS r ON r.team = c.team AND r.circle = c.circle AND r.seq > c.seq
  WHERE r.seq IS NULL
  GROUP BY c.team, c.proposal, c.version
), current AS (
  SELECT *, max(version) FROM versions GROUP BY team, proposal
)
SELECT v.team, v.proposal, v.version, v.producer, v.digest, v.summary,
       CASE WHEN v.withdrawn THEN 'withdrawn'
            WHEN done.published IS NOT NULL THEN 'published'
            WHEN done.completed IS NOT NULL THEN 'complete'
            ELSE 'delivered' END AS state,
       done.circle, v.at AS since
FROM current AS v LEFT JOIN done USING (team, proposal, version);

-- The approvals that count now: the member's last vote on the current, non-withdrawn version.
CREATE VIEW approvals AS
WITH votes AS (
  SELECT team, seq, at, kind, body, body ->> '$.proposal' AS proposal,
         body ->> '$.version' AS version, body ->> '$.by' AS member
  FROM events WHERE kind IN ('approved', 'objected')
), last_votes AS (
  SELECT *, max(seq) FROM votes GROUP BY team, proposal, version, member
)
SELECT v.team, v.proposal, v.version, v.member, v.body ->> '$.lenses' AS lenses,
       v.body ->> '$.checked' AS checked, v.body ->> '$.ran' AS ran, v.seq, v.at
FROM last_votes AS v JOIN proposals AS p USING (team, proposal, version)
WHERE v.kind = 'approved' AND p.state <> 'withdrawn';

-- Every objection, with how it stands: open, resolved, mistaken, overruled.
CREATE VIEW objections AS
WITH closed AS (
  SELECT team, at, body, body ->> '$.id' AS id FROM events WHERE kind = 'objection-closed'
), objected AS (
  SELECT team, seq, at, body, body ->> '$.id' AS id FROM events WHERE kind = 'objected'
)
SELECT o.team, o.id, o.body ->> '$.proposal' AS proposal, o.body ->> '$.version' AS version,
       o.body ->> '$.by' AS member, o.body ->> '$.lenses' AS lenses, o.body ->> '$.text' AS text,
       coalesce(c.body ->> '$.how', 'open') AS status, c.body ->> '$.by' AS closed_by,
       c.body ->> '$.reason' AS reason, c.at AS closed_at, o.seq, o.at
FROM objected AS o LEFT JOIN closed AS c USING (team, id);

-- Every note: read by the producer, blocking nobody.
CREATE VIEW notes AS
SELECT team, body ->> '$.id' AS id, body ->> '$.proposal' AS proposal,
       body ->> '$.version' AS version, body ->> '$.by' AS member, body ->> '$.text' AS text, seq, at
FROM events WHERE kind = 'noted';

-- Every question that was put to a person, with how it stands: open, answered by a person, closed by progress.
CREATE VIEW escalations AS
WITH closed AS (
  SELECT team, at, body, body ->> '$.id' AS id FROM events WHERE kind = 'escalation-closed'
), escalated AS (
  SELECT team, seq, at, body, body ->> '$.id' AS id FROM events WHERE kind = 'escalated'
)
SELECT e.team, e.id, e.body ->> '$.cause' AS cause, e.body ->> '$.subject' AS subject,
       e.body ->> '$.text' AS text, CASE WHEN c.id IS NULL THEN 'open' WHEN c.body ->> '$.by' IS NULL THEN 'closed' ELSE 'answered' END AS status,
       c.body ->> '$.decision' AS decision, c.body ->> '$.by' AS closed_by,
       c.body ->> '$.reason' AS reason, c.at AS closed_at, e.seq, e.at
FROM escalated AS e LEFT JOIN closed AS c USING (team, id);
