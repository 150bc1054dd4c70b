-- The sailings of a ferry line, told to PostgreSQL, whose server is lost, and later its slot. `capture.py` plays one chapter after the other.

-- chapter: opening
create table sailings (sailing int primary key, ship text, note text);
insert into sailings values (1, 'Alma', 'read'), (2, 'Bris', 'read'), (3, 'Cora', 'read'), (4, 'Dag', 'read');

-- chapter: monday
update sailings set note = 'monday' where sailing = 1;
insert into sailings values (5, 'Edda', 'monday closed');

-- chapter: tuesday
-- The replica has none of this. The long note takes the log beyond what the replica will have written.
insert into sailings values (6, 'Freja', repeat('lost ', 390));
update sailings set note = 'lost' where sailing in (1, 2);
delete from sailings where sailing = 3;
insert into sailings values (7, 'Gro', 'tuesday closed');

-- chapter: wednesday
update sailings set note = 'wednesday' where sailing = 2;
insert into sailings values (8, 'Hulda', 'wednesday closed');

-- chapter: thursday
-- Nobody reads this: the slot is gone.
update sailings set note = 'unread' where sailing = 1;
delete from sailings where sailing = 4;
insert into sailings values (9, 'Ida', 'unread');

-- chapter: friday
update sailings set note = 'friday' where sailing = 3;
insert into sailings values (10, 'Juno', 'friday closed');
