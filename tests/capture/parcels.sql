-- The parcels of a carrier, told to PostgreSQL, whose columns get other types. `capture.py` plays one chapter after the other.

-- chapter: opening
create table parcels (
    parcel int primary key, tariff int, price numeric(8, 2), fee numeric(6, 2), weight real, sent timestamp(3), due date,
    place varchar(20), pieces int, scans int
);
insert into parcels values
    (1, 10, 4.90, 0.05, 1.1, '2026-03-02 08:00:00.125', '2026-03-05', 'Ulm', 1, 3),
    (2, -2, 123456.78, 9999.99, -0.3, '1969-12-31 23:59:59.999', '1969-12-31', 'Köln', 2147483647, 0),
    (3, null, null, null, null, null, null, null, null, null);

-- chapter: monday
insert into parcels values (4, 40, 0, 0, 3e38, '2026-03-02 09:00:00', '2026-03-06', '', 4, 16777217);
update parcels set price = 5.10 where parcel = 1;
alter table parcels
    alter column tariff type varchar(20), alter column price type numeric(12, 4), alter column fee type text,
    alter column weight type double precision, alter column sent type timestamp(6), alter column due type timestamp,
    alter column place type text, alter column pieces type bigint, alter column scans type numeric(14, 3);
insert into parcels values
    (5, 'express', 1.2345, 'none', 1.1, '2026-03-02 10:00:00.000007', '2026-03-07 12:30:00', 'Bonn', 9007199254740993, 1.005);
update parcels set tariff = 'night' where parcel = 2;
insert into parcels (parcel, place) values (6, 'monday closed');

-- chapter: tuesday
alter table parcels alter column tariff type text, alter column scans type numeric(20, 6);
update parcels set scans = 0.000001, fee = 'free' where parcel = 4;
delete from parcels where parcel = 3;
insert into parcels (parcel, place) values (7, 'tuesday closed');
