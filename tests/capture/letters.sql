-- The letters of the same carrier, told to MariaDB, whose columns get other types. `capture.py` plays one chapter after the other.

-- chapter: opening
create database letters;
use letters;
create table letters (
    letter int primary key, tariff int, price decimal(8, 2), fee decimal(6, 2), weight float, sent datetime(3), due date,
    place varchar(20), pieces int, scans int
);
insert into letters values
    (1, 10, 4.90, 0.05, 1.1, '2026-03-02 08:00:00.125', '2026-03-05', 'Ulm', 1, 3),
    (2, -2, 123456.78, 9999.99, -0.3, '1970-01-01 00:00:00.001', '1969-12-31', 'Köln', 2147483647, 0),
    (3, null, null, null, null, null, null, null, null, null);

-- chapter: monday
insert into letters values (4, 40, 0, 0, 0.7, '2026-03-02 09:00:00', '2026-03-06', '', 4, 16777217);
update letters set price = 5.10 where letter = 1;
alter table letters
    modify tariff varchar(20), modify price decimal(12, 4), modify fee varchar(20), modify weight double,
    modify sent datetime(6), modify due datetime(6), modify place text, modify pieces bigint, modify scans decimal(14, 3);
insert into letters values
    (5, 'express', 1.2345, 'none', 1.1, '2026-03-02 10:00:00.000007', '2026-03-07 12:30:00', 'Bonn', 9007199254740993, 1.005);
update letters set tariff = 'night' where letter = 2;
insert into letters (letter, place) values (6, 'monday closed');

-- chapter: tuesday
alter table letters modify tariff text, modify scans decimal(20, 6);
update letters set scans = 0.000001, fee = 'free' where letter = 4;
delete from letters where letter = 3;
insert into letters (letter, place) values (7, 'tuesday closed');
