import sqlite3
for name in (":memory:", "file.db"):
    db = sqlite3.connect(name)
    db.execute("create table t (id integer primary key, name text, value real)")
    with db:
        db.executemany("insert into t (name, value) values (?, ?)",
                       ((f"name {i % 97}", i * 0.5) for i in range(20000)))
    with db:
        db.execute("update t set value = value + 1 where id % 3 = 0")
        db.execute("delete from t where id % 10 = 7")
    for row in db.execute("select name, count(*), sum(value) from t group by name order by name"):
        print(*row)
    print(db.execute("pragma integrity_check").fetchone()[0])
    db.close()
print("done")
