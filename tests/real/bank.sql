create table account (id integer primary key, owner text, amount integer);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
insert into account select i, 'owner ' || (i % 100), i * 7 % 1000 from n;
create index by_owner on account (owner, amount);
begin; update account set amount = amount - 10 where id % 2; update account set amount = amount + 10 where not id % 2; commit;
select owner, count(*), sum(amount) from account group by owner order by 3 desc, 1 limit 10;
pragma integrity_check;
select 'done';
