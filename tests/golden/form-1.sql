-- A database of form 1, as release 0.1 made it. It is never changed: each build brings it to its own form.
PRAGMA application_id = 1129531214;
PRAGMA user_version = 1;
PRAGMA foreign_keys = OFF;
BEGIN TRANSACTION;
CREATE TABLE credentials (
  hash BLOB PRIMARY KEY,               -- SHA-256 of the token
  team INTEGER NOT NULL REFERENCES teams (id),
  member TEXT NOT NULL,
  issued_at INTEGER NOT NULL,
  revoked_at INTEGER,
  seal BLOB NOT NULL                   -- SHA-256 of the other columns
) STRICT, WITHOUT ROWID;
INSERT INTO "credentials" VALUES(X'056BAA716FE8819400C92CF3252E47105D515C13C9C6C3A877848D6CCADC9D8A',1,'dana',1796106346677991,NULL,X'D30C4CBF816B091ED783432C43CA902D214735BDC3A17DDC06BE7CFAB02A3874');
INSERT INTO "credentials" VALUES(X'1E3DB05C139E8D554D2CD741D86C1926649841178BB7F5EDBD9823162DEFC360',1,'arch',1796106346649630,NULL,X'BB9102BBF60F0918B0F874090B8ED2A102B7C3F892B6DD71B51883FA9A692E32');
INSERT INTO "credentials" VALUES(X'4CDD8B7187C9559991ADFB57BD972F47F3573F22E64A37EC65081E8722FA777A',1,'sec',1796106346705747,NULL,X'AAED23E10738FD26719B97D81EA326A97EC904CEC65D6E3B50A38216C035A1C6');
INSERT INTO "credentials" VALUES(X'DB7D65424C5092DBDA34D978EA26C6A6049823D0A8D5E4AB80946DB60469769B',1,'app',1796106346633927,NULL,X'EB3A6316EBFFC80D76754B0B9DB226E7DD4670BF62A9B44820403AB9141D513F');
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
INSERT INTO "log" VALUES(1099511627777,1796106346614868,':operator','charter-adopted',1,X'1E42EEA04E15FC5B47B75789B6DC6FAC1CABC5F8EC76A542FCBCE8F9EF3535F2',NULL,NULL,NULL,'{"revision":1,"digest":"d4c8b1fc08dabf720f9f028c6b2357387d8ba757acf29542b9c57dcd88e4f9c7","text":"[team]\nname = \"atlas\"\n[members.app]\n[members.sec]\n[members.arch]\n[members.dana]\nkind = \"human\"\n[[phases]]\nname = \"implement\"\nconfirm = \"together\"\ndeliverables = [{ name = \"parser\", producer = \"app\" }]\nreviews = [\n    { reviewer = \"sec\", of = \"app\", lens = \"security\" },\n    { reviewer = \"arch\", of = \"app\", lens = \"design\" },\n]\n","charter":{"team":"atlas","repository":null,"publish":{"target":"refs/heads/main","how":"merge","check":null,"check_timeout":1200000000},"limits":{"withdraw_cooldown":120000000,"withdraw_flips":2,"rounds":5,"vote_changes":4,"notes":10,"stall_after":1800000000,"answer_within":1200000000,"deliver_within":0,"text_bytes":65536,"escalation_reminders":3},"members":{"app":{"kind":"agent","about":"","emails":[],"owns":[],"colour":null,"workdir":null,"watch":false,"notify":[]},"arch":{"kind":"agent","about":"","emails":[],"owns":[],"colour":null,"workdir":null,"watch":false,"notify":[]},"dana":{"kind":"human","about":"","emails":[],"owns":[],"colour":null,"workdir":null,"watch":false,"notify":[]},"sec":{"kind":"agent","about":"","emails":[],"owns":[],"colour":null,"workdir":null,"watch":false,"notify":[]}},"channels":{},"rules":{"folder":null,"modes":{}},"required_checks":[],"phases":[{"name":"implement","confirm":"together","deliverables":[{"name":"parser","producer":"app","target":null}],"reviews":[{"reviewer":"sec","of":"app","lens":"security"},{"reviewer":"arch","of":"app","lens":"design"}]}]}}');
INSERT INTO "log" VALUES(1099511627778,1796106346614868,':operator','phase-opened',1,X'089BCDDF494D3982F31AD3758CDDAFF9B70ADBDC8AD90518D3F9E9FDB0C5F0AE',NULL,NULL,NULL,'{"phase":"implement"}');
INSERT INTO "log" VALUES(1099511627779,1796106347139855,'app','proposed',1,X'4EFF2FDB37F109E676A5C279BFDD82413CA8751DAB4CE6EE83637425875E07FC','0193aaaa-0000-7000-8000-000000000001',X'B7C106F2E7F0C1CC08846D4D069DA34AE4916684541DBC5C365664B627A8E552','{"answer":"proposed","reference":"parser@1:d3f76219f313","digest":"d3f76219f313457b2a42ce210f4bee08cf2082187c35f80796d9fc54601a37bd","escalated":[],"woke":[{"member":"arch","presence":"not-joined"},{"member":"sec","presence":"not-joined"}]}','{"proposal":"parser","version":1,"producer":"app","artifact":{"kind":"bundle","digest":"d3f76219f313457b2a42ce210f4bee08cf2082187c35f80796d9fc54601a37bd","content":"d3f76219f313457b2a42ce210f4bee08cf2082187c35f80796d9fc54601a37bd"},"summary":"Streaming parser","paths":["lexer.rs"],"round":false,"files":["f4dde5fd48b507f3ea9361d5f9cb6993a85298699a04aa6709ce4e9220574ab5"]}');
INSERT INTO "log" VALUES(1099511627780,1796106347420330,'sec','version-read',1,X'4B48516DDC116A277F6308581EB718B5E432D9039F3BCF4C03234936A4452B1E','01a23047-e39a-775e-bfde-dd56ca022255',X'C58ECFA795548E22A28506FBB2437A30391EB2D6BEE549CFE54755D92296C00C','{"answer":"read","reference":"parser@1:d3f76219f313"}','{"proposal":"parser","version":1,"by":"sec"}');
INSERT INTO "log" VALUES(1099511627781,1796106347438558,'sec','objected',1,X'986B9ABA2967B182F9B77F9AD41A8AF134F7F0CA837343C7CAF7B3612E747BE5','0193aaaa-0000-7000-8000-000000000002',X'A962DE6546B32584DE241C6E87D2E9439821B0EB0EC08590D9F05E15A0473E07','{"answer":"raised","objection":"o1","reference":"parser@1:d3f76219f313","woke":[{"member":"app","presence":"offline","since":1796106347139855}]}','{"id":"o1","proposal":"parser","version":1,"by":"sec","lenses":["security"],"text":"Overflows"}');
INSERT INTO "log" VALUES(1099511627782,1796106347452452,'app','objections-read',1,X'C42E5BEF3805642661886CD4A6587BAC8419A3384CE3379AAFA26391917877FB','01a23047-e3ba-7301-98d9-af947b310cde',X'9673636EDBEFC8DA179284B0F705BFFAFF703E82877A256061719860433487C3','{"answer":"objections-read","proposal":"parser"}','{"proposal":"parser","by":"app","objections":["o1"]}');
INSERT INTO "log" VALUES(1099511627783,1796106347484613,'arch','version-read',1,X'CDF92C53E804047609834480C0ED8CA9B918156E578EDFD451F12B143EA73F11','01a23047-e3da-77f9-b4ac-651eff1c51c2',X'C58ECFA795548E22A28506FBB2437A30391EB2D6BEE549CFE54755D92296C00C','{"answer":"read","reference":"parser@1:d3f76219f313"}','{"proposal":"parser","version":1,"by":"arch"}');
INSERT INTO "log" VALUES(1099511627784,1796106347519304,'arch','approved',1,X'AE8C9FD2F4E190FA8591C73EE6403FD5B9833E9D0FAEE7DB76DE389A09C676B9','01a23047-e3fa-758d-832f-fe2ec6a3133a',X'807414E70C0AA8E498F600E31E4687AF2D674E0A2E3A4822183A5CE201D8F99C','{"answer":"approved","reference":"parser@1:d3f76219f313","resolved":[]}','{"proposal":"parser","version":1,"by":"arch","lenses":["design"],"ran":[{"command":"cargo test"}]}');
CREATE TABLE teams (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL          -- microseconds since 1970, UTC
) STRICT;
INSERT INTO "teams" VALUES(1,'atlas',1796106346578068);
CREATE INDEX log_requests ON log (request_id, actor) WHERE request_id IS NOT NULL;
CREATE VIEW events AS
SELECT teams.name AS team, log.seq,
       strftime('%Y-%m-%dT%H:%M:%S', log.at / 1000000, 'unixepoch')
         || printf('.%06dZ', log.at % 1000000) AS at,
       log.actor, log.kind, log.body
FROM log JOIN teams ON teams.id = log.team;
CREATE VIEW members AS
SELECT charter.team, member.key AS member, member.value ->> '$.kind' AS kind,
       member.value ->> '$.about' AS about, member.value ->> '$.emails' AS emails
FROM (SELECT team, body, max(seq) FROM events WHERE kind = 'charter-adopted' GROUP BY team) AS charter,
     json_each(charter.body, '$.charter.members') AS member;
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
CREATE VIEW notes AS
SELECT team, body ->> '$.id' AS id, body ->> '$.proposal' AS proposal,
       body ->> '$.version' AS version, body ->> '$.by' AS member, body ->> '$.text' AS text, seq, at
FROM events WHERE kind = 'noted';
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
COMMIT;
