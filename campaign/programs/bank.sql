-- Accounts and transfers in a database file: B-trees, a journal, many file calls.
create table account(id integer primary key, owner text, cents integer not null);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 400)
insert into account select i, 'owner ' || (i * 7919 % 1000), i * 1009 % 10007 from n;
create index by_owner on account(owner);
create table transfer(id integer primary key, source integer, target integer, cents integer);
begin;
with recursive n(i, x) as (select 1, 12345 union all select i + 1, x * 16807 % 2147483647 from n where i < 1500)
insert into transfer select i, 1 + x % 400, 1 + x / 512 % 400, x % 1000 from n;
update account set cents = cents
  - (select coalesce(sum(cents), 0) from transfer where source = account.id)
  + (select coalesce(sum(cents), 0) from transfer where target = account.id) where id <= 60;
commit;
delete from transfer where id % 7 = 0;
select count(*), sum(cents), min(cents), max(cents) from account;
select owner, count(*), sum(cents) from account group by owner order by 3 desc, 1 limit 8;
select sum(t.cents * length(a.owner)) from transfer t join account a on a.id = t.source;
vacuum;
pragma integrity_check;
