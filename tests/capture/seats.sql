-- The seats of a small theatre, told to PostgreSQL: rows pass their keys on. `capture.py` plays one chapter after the other.

-- chapter: opening
-- Checked at the end of a statement or transaction. Such a key is no replica identity: PostgreSQL wants another, or whole rows.
create table seats (seat int primary key deferrable, guest text, note text);
alter table seats replica identity full;
insert into seats values (1, 'Ada', 'aisle'), (2, 'Bo', null), (3, 'Cem', 'x'), (8, 'Ada', 'aisle');

-- chapter: monday
update seats set seat = seat + 1 where seat < 4;
update seats set seat = 5 - seat where seat in (2, 3);
insert into seats values (1, 'Dee', 'early');

-- chapter: tuesday
begin;
set constraints all deferred;
update seats set seat = 1 where seat = 2;
insert into seats values (20, 'killed here', null);
update seats set seat = 2, note = 'moved' where guest = 'Dee';
update seats set seat = 30 where seat = 1;
update seats set seat = 1 where seat = 30;
commit;
insert into seats values (21, 'tuesday', 'closed');

-- chapter: wednesday
begin;
update seats set seat = case seat when 1 then 8 else 1 end where seat in (1, 8);
update seats set guest = guest || '!' where seat = 1;
delete from seats where seat = 4;
commit;
insert into seats values (22, 'wednesday', 'closed');
