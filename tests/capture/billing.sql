-- A week of a small energy co-operative's billing, told to MariaDB. `capture.py` plays one chapter after the other.

-- chapter: opening
-- Captured by the initial snapshot.

create database billing character set utf8mb4 collate utf8mb4_general_ci;
create database archive character set utf8mb4 collate utf8mb4_general_ci;
use billing;

-- What is written here tells the connector what to do; it marks its windows here, too.
create table debezium_signal (id varchar(42) primary key, type varchar(32) not null, data varchar(2048));

create table invoices (
    invoice_id int unsigned primary key,
    account_no varchar(12) not null,
    status enum ('open', 'paid', 'void') not null default 'open',
    amount decimal(10, 2) not null,
    issued_on date
);

create table invoice_lines (
    invoice_id int unsigned,
    line_no smallint,
    label varchar(40) not null,
    kwh decimal(12, 3),
    primary key (invoice_id, line_no)
);

-- The same table name in another database.
create table archive.invoices (invoice_id int unsigned primary key, closed_at datetime(6), remark text);

-- The key does not tell upper from lower case.
create table accounts (account_no varchar(12) primary key, holder varchar(40) not null, city varchar(30));

-- A key that does not fit a signed 64-bit number.
create table payments (payment_id bigint unsigned primary key, invoice_id int unsigned, amount decimal(10, 2), paid_at timestamp(6) null);

create table contracts (contract_id int primary key, account_no varchar(12), tariff varchar(10));
create table tariffs (code varchar(10) primary key, cents_per_kwh decimal(6, 3) not null, note varchar(40), legacy_code int);
create table dunning (account_no varchar(12) primary key, level tinyint not null);
create table reminders (reminder_id int auto_increment primary key, account_no varchar(12), text varchar(80));

create table `Meter Readings` (
    `Meter Id` int primary key,
    `select` varchar(20),
    `kWh.day` decimal(8, 2),
    `back``tick` varchar(20),
    `Größe` varchar(20),
    `名前` varchar(20)
);
create table `order` (`from` varchar(10) primary key, `to` varchar(10), `group` int);
create table `Meter.Swaps` (`Swap.No` int primary key, `Reason` varchar(40));

-- A column named like a member of the record.
create table webhooks (hook_id int primary key, payload text, source text, op char(1));

-- No key: the same row can be there twice.
create table notes (account_no varchar(12), note varchar(80), written_at datetime);

create table job_log (entry_id int auto_increment primary key, note varchar(60) not null);

insert into invoices values
    (5001, 'AC-100', 'paid', 84.20, '2024-01-31'), (5002, 'AC-200', 'open', 120.00, '2024-02-29'), (5003, 'AC-300', 'open', 9.99, null);
insert into invoice_lines values (5001, 1, 'Strom Jänner', 310.500), (5001, 2, 'Grundgebühr', null), (5002, 1, 'Strom Feber', 402.125);
insert into archive.invoices values (4001, '2023-12-31 23:59:59.999999', 'paid late'), (5001, '2024-02-15 10:00:00', null);
insert into accounts values
    ('AC-100', 'Ines Huber', 'Graz'), ('AC-200', 'Jörg Maier', 'Wien'), ('AC-300', 'Kamila Nowák', null), ('AC-400', 'Lê Văn An', 'Linz');
insert into payments values
    (1, 5001, 84.20, '2024-02-10 08:00:00.123456'), (18446744073709551615, 5002, 20.00, '2024-03-01 00:00:00');
insert into contracts values (1, 'AC-100', 'BASE'), (2, 'AC-200', 'NIGHT'), (3, 'AC-300', 'BASE');
insert into tariffs values ('BASE', 21.400, 'since 2019', 7), ('NIGHT', 14.950, null, 8);
insert into dunning values ('AC-200', 1), ('AC-300', 2);
insert into reminders (account_no, text) values ('AC-200', 'First reminder'), ('AC-300', 'Second reminder');
insert into `Meter Readings` values (1, 'a', 12.30, 'x`y', 'groß', '電気'), (2, null, -0.50, '``', 'klein', null);
insert into `order` values ('Wien', 'Graz', 1);
insert into `Meter.Swaps` values (1, 'Worn out');
insert into webhooks values (1, '{"schema":null,"payload":{"op":"d"}}', 'mail', 'x'), (2, 'plain "payload": text', null, null);
insert into notes values ('AC-100', 'called', '2024-02-01 09:00:00'), ('AC-100', 'called', '2024-02-01 09:00:00');
insert into job_log (note) values ('billing opened');

create table all_types (
    id int primary key,
    c_tinyint tinyint,
    c_tinyint_1 tinyint(1),
    c_tinyint_u tinyint unsigned,
    c_smallint smallint,
    c_smallint_u smallint unsigned,
    c_mediumint mediumint,
    c_mediumint_u mediumint unsigned,
    c_int int,
    c_int_u int unsigned,
    c_bigint bigint,
    c_bigint_u bigint unsigned,
    c_decimal_10_2 decimal(10, 2),
    c_decimal_38_10 decimal(38, 10),
    c_decimal_65_30 decimal(65, 30),
    c_float float,
    c_double double,
    c_bit bit(1),
    c_bit_10 bit(10),
    c_bit_64 bit(64),
    c_char char(5),
    c_varchar varchar(40),
    c_text text,
    c_latin varchar(20) character set latin1,
    c_binary binary(4),
    c_varbinary varbinary(16),
    c_blob blob,
    c_date date,
    c_datetime datetime,
    c_datetime_3 datetime(3),
    c_datetime_6 datetime(6),
    c_timestamp timestamp null,
    c_timestamp_3 timestamp(3) null,
    c_timestamp_6 timestamp(6) null,
    c_time time,
    c_time_3 time(3),
    c_time_6 time(6),
    c_year year,
    c_enum enum ('green', 'black', 'a,b'),
    c_set set ('red', 'green', 'blue'),
    c_json json,
    c_uuid uuid,
    c_point point,
    c_geometry geometry
);

-- Not here: inet4 and inet6, at which the connector's DDL parser fails.
-- 1 ordinary, 2 and 4 extreme, 3 NULL
insert into all_types values
    (1, 1, 1, 200, -300, 60000, -70000, 16000000, 123456, 4000000000, -1234567890123, 1234567890123, 1234.50, 12345.0000000001,
     1.5, 1.5, 0.1, b'1', b'1000000001', b'1', 'ab', 'Grüner Strom 🍵', 'Zeile eins', 'café', x'dead', x'beef', x'cafe00', '2024-02-29',
     '2024-02-29 12:34:56', '2024-02-29 12:34:56.789', '2024-02-29 12:34:56.789012', '2024-02-29 12:34:56', '2024-02-29 12:34:56.789',
     '2024-02-29 12:34:56.789012', '12:34:56', '12:34:56.789', '12:34:56.789012', 2024, 'green', 'red,blue', '{"b": 1, "a": [1.10, null]}',
     'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', point(1.5, -2),
     st_geomfromtext('LINESTRING(0 0,1 1)', 4326)),
    (2, -128, -128, 0, -32768, 0, -8388608, 0, -2147483648, 0, -9223372036854775808, 0, -99999999.99,
     -9999999999999999999999999999.9999999999, -99999999999999999999999999999999999.999999999999999999999999999999, -3.40282e38,
     -1.7976931348623157e308, b'0', b'0', b'0', '', '', '', '', x'', x'', x'', '0001-01-01', '1000-01-01 00:00:00',
     '1969-12-31 23:59:59.999', '1000-01-01 00:00:00.000001', '1970-01-01 00:00:01', '1970-01-01 00:00:01.001',
     '1970-01-01 00:00:01.000001', '-838:59:59', '-00:00:00.001', '-838:59:59.000001', 1901, 'black', '', '[]',
     '00000000-0000-0000-0000-000000000000', point(-1e300, 1e300), st_geomfromtext('POINT(0 0)')),
    (4, 127, 127, 255, 32767, 65535, 8388607, 16777215, 2147483647, 4294967295, 9223372036854775807, 18446744073709551615, 99999999.99,
     9999999999999999999999999999.9999999999, 99999999999999999999999999999999999.999999999999999999999999999999, 3.14159274,
     2.2250738585072014e-308, b'1', b'1111111111', b'1111111111111111111111111111111111111111111111111111111111111111', 'ÄÖÜß€',
     'line\nbreak\ttab "quote" back\\slash', '\0', 'ÿ€', x'ffffffff', x'ff00', repeat(x'0102', 20), '9999-12-31', '9999-12-31 23:59:59',
     '9999-12-31 23:59:59.999', '9999-12-31 23:59:59.999999', '2038-01-19 03:14:07', '2038-01-19 03:14:07.999',
     '2038-01-19 03:14:07.999999', '838:59:59', '838:59:59.999', '24:00:00', 2155, 'a,b', 'red,green,blue',
     '{"n": 12345678901234567890.123456789, "s": "\\u00e4\\""}', 'ffffffff-ffff-ffff-ffff-ffffffffffff', point(0, 0),
     st_geomfromtext('POLYGON((0 0,4 0,4 4,0 0))'));
insert into all_types (id) values (3);

-- chapter: monday
-- Streamed; the connector is stopped cleanly in the evening.

insert into invoices values (5004, 'AC-100', 'open', 77.70, '2024-03-04'), (5005, 'AC-400', 'open', 99999999.99, '2024-03-04');
insert into invoice_lines values (5004, 1, 'Strom März', 280.000), (5004, 2, 'Grundgebühr', null), (5005, 1, 'Anschluss', null);
start transaction;
update invoices set status = 'paid' where invoice_id = 5002;
insert into payments values (9223372036854775808, 5002, 100.00, '2024-03-04 09:30:00');
update payments set amount = 20.50 where payment_id = 18446744073709551615;
commit;
update invoices set amount = amount + 1 where status = 'open' and amount < 1000;

-- Deleted and inserted again, once in two transactions, once in one.
delete from invoices where invoice_id = 5003;
insert into invoices values (5003, 'AC-300', 'void', 0, '2024-03-04');
start transaction;
delete from invoice_lines where invoice_id = 5004 and line_no = 2;
insert into invoice_lines values (5004, 2, 'Rabatt', -1.000);
commit;
replace into payments values (1, 5001, 84.00, null);
insert into tariffs values ('BASE', 0, null, null) on duplicate key update cents_per_kwh = 22.100;

-- Key changes, also of a part of a key, also of the case alone.
update accounts set account_no = 'AC-310' where account_no = 'AC-300';
update accounts set account_no = 'ac-400' where account_no = 'AC-400';
update invoice_lines set line_no = 9 where invoice_id = 5001 and line_no = 2;
delete from contracts where contract_id = 3;

insert into `Meter Readings` values (3, 'new', 30.00, '`', 'riesig', '水');
update `Meter Readings` set `Größe` = 'mittel', `kWh.day` = 13.00 where `Meter Id` = 1;
update `Meter Readings` set `Meter Id` = 20 where `Meter Id` = 2;
update `order` set `to` = 'Linz', `group` = null where `from` = 'Wien';
update `Meter.Swaps` set `Reason` = 'Wrong size' where `Swap.No` = 1;
update webhooks set payload = '{"before":null,"payload":"\\u0022payload\\u0022:"}', op = 'c' where hook_id = 2;

insert into notes values ('AC-200', 'wrote', '2024-03-04 10:00:00'), ('AC-100', 'called', '2024-02-01 09:00:00');
update notes set note = 'wrote twice' where account_no = 'AC-200';
delete from notes where account_no = 'AC-100' limit 1;

-- The rows of the snapshot once more, as the log carries them.
insert into all_types select
    id + 10, c_tinyint, c_tinyint_1, c_tinyint_u, c_smallint, c_smallint_u, c_mediumint, c_mediumint_u, c_int, c_int_u, c_bigint,
    c_bigint_u, c_decimal_10_2, c_decimal_38_10, c_decimal_65_30, c_float, c_double, c_bit, c_bit_10, c_bit_64, c_char, c_varchar,
    c_text, c_latin, c_binary, c_varbinary, c_blob, c_date, c_datetime, c_datetime_3, c_datetime_6, c_timestamp, c_timestamp_3,
    c_timestamp_6, c_time, c_time_3, c_time_6, c_year, c_enum, c_set, c_json, c_uuid, c_point, c_geometry
from all_types order by id;
update all_types set c_text = 'set later' where id = 13;
delete from all_types where id = 13;

insert into job_log (note) values ('monday closed');

-- chapter: tuesday
-- The connector is killed inside the price change.

alter table contracts add column signed_on date, add column discount decimal(5, 2) not null default 2.50;
update contracts set signed_on = '2020-05-01' where contract_id = 1;
insert into contracts values (4, 'ac-400', 'NIGHT', null, 0);

-- Two accounts swap their numbers through a third.
start transaction;
update accounts set account_no = 'SWAP' where account_no = 'AC-100';
update accounts set account_no = 'AC-100' where account_no = 'AC-200';
update accounts set account_no = 'AC-200' where account_no = 'SWAP';
commit;

flush binary logs;

start transaction;
update tariffs set cents_per_kwh = 23.000 where code = 'BASE';
insert into tariffs values ('T-01', 10.100, null, null), ('T-02', 10.200, null, null), ('T-03', 10.300, null, null);
update tariffs set cents_per_kwh = 15.500 where code = 'NIGHT';
insert into tariffs values ('T-04', 10.400, null, null), ('T-05', 10.500, null, null), ('T-06', 10.600, null, null);
delete from tariffs where code = 'T-02';
update tariffs set code = 'T-10' where code = 'T-01';
update tariffs set note = 'new' where code like 'T-%';
commit;

-- chapter: tuesday night
-- The connector is down.

alter table tariffs drop column legacy_code;
update tariffs set cents_per_kwh = 9.900 where code = 'T-10';
insert into tariffs values ('DAY', 25.000, 'without the old code');
truncate table dunning;
insert into dunning values ('AC-310', 1), ('AC-200', 3);
insert into job_log (note) values ('tuesday closed');

-- chapter: wednesday
-- The connector is killed in the evening, with offsets that lag behind.

update reminders set text = 'Last reminder' where account_no = 'AC-200';
truncate table reminders;
insert into reminders (account_no, text) values ('AC-200', 'Once more'), ('AC-310', 'Please');
insert into archive.invoices values (5002, '2024-03-06 12:00:00.5', 'paid');
update archive.invoices set remark = 'settled' where invoice_id = 5001;
delete from archive.invoices where invoice_id = 4001;
insert into job_log (note) values ('wednesday closed');

-- chapter: thursday
-- While two tables are read once more (an incremental snapshot), their rows change.

insert into debezium_signal values (
    'again', 'execute-snapshot', '{"type": "incremental", "data-collections": ["billing.accounts", "billing.invoices"]}'
);
update invoices set status = 'paid' where invoice_id in (5004, 5005);
update accounts set city = 'Villach' where account_no = 'AC-310';
delete from payments where payment_id = 9223372036854775808;
delete from `Meter Readings` where `Meter Id` = 3;
delete from webhooks where hook_id = 2;
insert into job_log (note) values ('thursday closed');
