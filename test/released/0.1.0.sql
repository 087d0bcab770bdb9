CREATE TABLE sluice_migrations (id BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_at_ms BIGINT NOT NULL);
INSERT INTO sluice_migrations (id, name, applied_at_ms) VALUES (1, 'versions and audit', 1794851924042);
INSERT INTO sluice_migrations (id, name, applied_at_ms) VALUES (2, 'tokens', 1794851924043);
INSERT INTO sluice_migrations (id, name, applied_at_ms) VALUES (3, 'ended sessions', 1794851924043);
CREATE TABLE sluice_versions ( version BIGINT PRIMARY KEY, created_at_ms BIGINT NOT NULL, author TEXT NOT NULL, message TEXT NOT NULL, kind TEXT NOT NULL, digest TEXT NOT NULL, diff TEXT NOT NULL, document TEXT NOT NULL );
INSERT INTO sluice_versions (version, created_at_ms, author, message, kind, digest, diff, document) VALUES (1, 1794851924066, 'sluice', 'starter rules', 'starter', '10a136b32600d747e30e540c078dae4a070f5a430944a1fb695d9ac65d6f0894', '{"added":2,"removed":0,"changed":0,"reordered":false,"changes":[{"rule":"starter-per-user","change":"added"},{"rule":"starter-per-address","change":"added"}]}', '{"rules":[
{"id":"starter-per-user","description":"Five requests in any ten seconds for each user. Replace me.","key":["user"],"algorithm":"rolling-window","limit":5,"window":"10s"},
{"id":"starter-per-address","description":"For requests that come by address: forward-auth, the proxy. Replace me.","key":["ip"],"algorithm":"token-bucket","limit":100,"window":"1m"}
]}
');
INSERT INTO sluice_versions (version, created_at_ms, author, message, kind, digest, diff, document) VALUES (2, 1794851924693, 'admin', 'the first', 'rule', '589ec3577d6a29638552d5dc36bd02a16741ed5663f76b3ad0e5afb76377f3ba', '{"added":1,"removed":0,"changed":0,"reordered":false,"changes":[{"rule":"per-user","change":"added"}]}', '{"rules":[
{"id":"starter-per-user","description":"Five requests in any ten seconds for each user. Replace me.","key":["user"],"algorithm":"rolling-window","limit":5,"window":"10s"},
{"id":"starter-per-address","description":"For requests that come by address: forward-auth, the proxy. Replace me.","key":["ip"],"algorithm":"token-bucket","limit":100,"window":"1m"},
{"id":"per-user","key":["user"],"algorithm":"rolling-window","limit":100,"window":"1m"}
]}
');
INSERT INTO sluice_versions (version, created_at_ms, author, message, kind, digest, diff, document) VALUES (3, 1794851924730, 'admin', '', 'rule', '6e3636a8f2e6cfe5a6198e0a1e5339ef0260e7287abb9bd50e8936392dff45bb', '{"added":0,"removed":0,"changed":1,"reordered":false,"changes":[{"rule":"per-user","change":"changed","fields":[{"path":"limit","from":100,"to":7},{"path":"overrides[{\"user\":\"acme\"}]","to":{"match":{"user":"acme"},"limit":5000}}]}]}', '{"rules":[
{"id":"starter-per-user","description":"Five requests in any ten seconds for each user. Replace me.","key":["user"],"algorithm":"rolling-window","limit":5,"window":"10s"},
{"id":"starter-per-address","description":"For requests that come by address: forward-auth, the proxy. Replace me.","key":["ip"],"algorithm":"token-bucket","limit":100,"window":"1m"},
{"id":"per-user","key":["user"],"algorithm":"rolling-window","limit":7,"window":"1m","overrides":[
{"match":{"user":"acme"},"limit":5000}
]}
]}
');
CREATE TABLE sluice_audit ( id BIGINT PRIMARY KEY, at_ms BIGINT NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL, target TEXT NOT NULL, details TEXT NOT NULL );
INSERT INTO sluice_audit (id, at_ms, actor, action, target, details) VALUES (1, 1794851924067, 'sluice', 'rules.changed', 'version 1', '{"version":1,"message":"starter rules","kind":"starter","added":2,"removed":0,"changed":0}');
INSERT INTO sluice_audit (id, at_ms, actor, action, target, details) VALUES (2, 1794851924693, 'admin', 'rules.changed', 'version 2', '{"version":2,"message":"the first","kind":"rule","added":1,"removed":0,"changed":0}');
INSERT INTO sluice_audit (id, at_ms, actor, action, target, details) VALUES (3, 1794851924734, 'admin', 'rules.changed', 'version 3', '{"version":3,"message":"","kind":"rule","added":0,"removed":0,"changed":1}');
INSERT INTO sluice_audit (id, at_ms, actor, action, target, details) VALUES (4, 1794851924753, 'admin', 'key.reset', 'per-user', '{"attributes":{"user":"ann"}}');
INSERT INTO sluice_audit (id, at_ms, actor, action, target, details) VALUES (5, 1794851926927, 'admin', 'token.created', 'stored-bot', '{"role":"editor"}');
CREATE TABLE sluice_tokens ( name TEXT PRIMARY KEY, role TEXT NOT NULL, hash TEXT NOT NULL UNIQUE, created_at_ms BIGINT NOT NULL, created_by TEXT NOT NULL );
INSERT INTO sluice_tokens (name, role, hash, created_at_ms, created_by) VALUES ('stored-bot', 'editor', 'a6f1a537ca1b6f14fd2caeb02e425d593deac50295c7a08254303345a76af459', 1794851926927, 'admin');
CREATE TABLE sluice_ended_sessions ( id TEXT PRIMARY KEY, name TEXT NOT NULL, ends_at_ms BIGINT NOT NULL );
