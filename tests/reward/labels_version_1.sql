BEGIN TRANSACTION;
CREATE TABLE answer (
    key TEXT PRIMARY KEY, status TEXT NOT NULL, vals TEXT NOT NULL, raw TEXT NOT NULL, details TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL, reply_tokens INTEGER NOT NULL, cost REAL NOT NULL, latency REAL NOT NULL,
    attempts INTEGER NOT NULL, identity TEXT NOT NULL, time TEXT NOT NULL
);
INSERT INTO "answer" VALUES('k0','ok','[0.75]','yes','{}',10,2,0.0,0.0,1,'e0fa8ab9cc1722feed1f908bdba78935085c966a764d9ab4e815f2b0b7045ccc','2026-11-23T12:29:53.539+00:00');
CREATE TABLE identity (digest TEXT PRIMARY KEY, content TEXT NOT NULL);
INSERT INTO "identity" VALUES('e0fa8ab9cc1722feed1f908bdba78935085c966a764d9ab4e815f2b0b7045ccc','{"backend":"openai","camera":"front","frames":3,"image":"jpeg90","max_reply_tokens":512,"model":"test/vision-1","revision":"","structured":"json_schema","task":"push it","temperature":0.0}');
CREATE TABLE label (name TEXT, subject TEXT, key TEXT NOT NULL REFERENCES answer, PRIMARY KEY (name, subject));
INSERT INTO "label" VALUES('success','[{"camera":"front","episode_id":"e0","fingerprint":"f0","rows":[0,1,2]}]','k0');
CREATE TABLE labeller (name TEXT PRIMARY KEY, kind TEXT NOT NULL, identity TEXT NOT NULL, settings TEXT NOT NULL);
INSERT INTO "labeller" VALUES('success','success','{"backend":"openai","camera":"front","frames":3,"image":"jpeg90","max_reply_tokens":512,"model":"test/vision-1","revision":"","structured":"json_schema","task":"push it","temperature":0.0}','{"answer":"structured","backend":"openai","budget":{"calls":0,"money":0.0,"seconds":0.0,"tokens":0},"endpoint":{"attempts":5,"backoff_s":1.0,"concurrency":4,"key_variable":"OPENAI_API_KEY","max_reply_tokens":512,"model":"test/vision-1","price_prompt":0.0,"price_reply":0.0,"revision":"","structured":"json_schema","temperature":0.0,"timeout_s":60.0,"url":"http://127.0.0.1:8000/v1"},"frames":{"camera":"","count":8,"longest_side":384},"head":"","kind":"success","local":{"batch_size":16,"device":"cpu","download":false,"max_reply_tokens":512,"model":"","precision":"float32","revision":""},"pair_ends":0.5,"pairs":200,"prompt":"","score":{"alpha":0.0,"baselines":[],"goal_images":[],"goals":[]},"seed":0,"task":""}');
INSERT INTO "labeller" VALUES('head','success','{"backend":"head","model":"h"}','{}');
COMMIT;
PRAGMA user_version=1;
