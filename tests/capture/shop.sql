-- A week of a small tea shop, told to PostgreSQL. `capture.py` plays one chapter after the other.

-- chapter: opening
-- Captured by the initial snapshot.

create schema archive;
create extension citext;
create extension hstore;
create extension ltree;

-- What is written here tells the connector what to do; it marks its windows here, too.
create table debezium_signal (id varchar(42) primary key, type varchar(32) not null, data varchar(2048));

create table customers (
    customer_id int primary key,
    name text not null,
    email varchar(60) not null,
    vip boolean not null default false
);

create table orders (
    order_id bigint primary key,
    customer_id int not null,
    status text not null,
    total numeric(12, 2) not null,
    ordered_at timestamptz not null
);

create table order_lines (
    order_id bigint,
    line_no smallint,
    sku varchar(12) not null,
    quantity int not null,
    primary key (order_id, line_no)
);

-- The same table name in another schema.
create table archive.orders (
    order_id bigint primary key,
    closed_on date not null,
    remark text
);

-- Long values are stored out of line, so an update that does not set them does not log them.
create table products (
    sku varchar(12) primary key,
    price numeric(8, 2),
    description text,
    attributes jsonb,
    photo bytea,
    tags text[]
) with (toast_tuple_target = 128);
alter table products
    alter description set storage external,
    alter attributes set storage external,
    alter photo set storage external,
    alter tags set storage external;

-- The same for the other types that can be long.
create table certificates (
    certificate_id int primary key,
    status text not null,
    modulus numeric,
    exponent numeric(600, 0),
    serials int[],
    sizes bigint[],
    valid_on date[],
    batches uuid[],
    labels hstore,
    report xml,
    history json,
    note varchar(900),
    scans bytea[],
    weights numeric(8, 2)[]
) with (toast_tuple_target = 128);
alter table certificates
    alter modulus set storage external,
    alter exponent set storage external,
    alter serials set storage external,
    alter sizes set storage external,
    alter valid_on set storage external,
    alter batches set storage external,
    alter labels set storage external,
    alter report set storage external,
    alter history set storage external,
    alter note set storage external,
    alter scans set storage external,
    alter weights set storage external;

-- The former row is logged whole, long values too.
create table reviews (
    review_id int primary key,
    sku varchar(12) not null,
    stars smallint not null,
    body text
) with (toast_tuple_target = 128);
alter table reviews alter body set storage external;
alter table reviews replica identity full;

create table stock (
    depot char(3),
    sku varchar(12),
    amount int not null,
    primary key (depot, sku)
);

create table carts (cart_id int primary key, customer_id int);
create table cart_lines (cart_id int, sku varchar(12), quantity int, primary key (cart_id, sku));

create table coupons (coupon_id int primary key, code text not null, percent smallint not null);

create table "Gift Boxes" (
    "Box Id" int primary key,
    "select" text,
    "price.net" numeric(8, 2),
    "back`tick" text,
    "Größe" text,
    "名前" text
);

create table "order" ("from" text primary key, "to" text, "group" int);

create table "Return.Slips" ("Slip.No" int primary key, "Reason" text);

-- A column named like a member of the record.
create table webhooks (hook_id int primary key, payload text, source text, op char(1));

-- No key: the same row can be there twice.
create table page_views (visitor text, path text, seen_at timestamp);
alter table page_views replica identity full;

create table journal (entry_id int generated always as identity primary key, note text not null);

insert into customers values
    (1, 'Ada Brandt', 'ada@example.org', true),
    (2, 'Bora Yılmaz', 'bora@example.org', false),
    (3, 'Chiara Conti', 'chiara@example.org', false),
    (4, 'Dmitri Orlov', 'dmitri@example.org', false);
insert into orders values
    (1001, 1, 'shipped', 48.50, '2024-02-26 09:12:45.120+01'),
    (1002, 2, 'paid', 12.00, '2024-02-27 18:30:00+01'),
    (1003, 3, 'open', 7.25, '2024-02-29 23:59:59.999999+01');
insert into order_lines values (1001, 1, 'DARJ-100', 2), (1001, 2, 'SENCHA-50', 1), (1002, 1, 'ASSAM-250', 1);
insert into archive.orders values (900, '2023-12-30', 'picked up'), (1001, '2024-02-28', null);
insert into products values
    ('DARJ-100', 14.90, repeat('First flush from the upper garden, picked before the rain. ', 10),
     jsonb_build_object('origin', 'Darjeeling', 'story', repeat('slope ', 110)),
     decode(repeat('89504e470d0a1a0a', 80), 'hex'), array_fill('spring'::text, array[60])),
    ('SENCHA-50', 9.80, repeat('Steamed, grass-green, a little of the sea. ', 14),
     jsonb_build_object('origin', '静岡', 'story', repeat('steam ', 110)),
     decode(repeat('ffd8ffe000104a46', 80), 'hex'), array_fill('green'::text, array[60])),
    ('MUG-01', 11.00, 'A mug.', '{"colour": "white"}', '\x00ff', '{ceramic,NULL,"dish, washer"}');
insert into certificates values
    (1, 'valid', (repeat('7919', 140))::numeric, (repeat('3571', 130))::numeric,
     array_fill(1001, array[80]), array_fill(9007199254740993, array[50]), array_fill(date '2024-02-29', array[80]),
     array_fill(uuid '5f0c954e-3e1b-4cbb-9a5c-2f6b1c3d4e5f', array[20]),
     hstore('grower', repeat('Makaibari ', 40)), xmlparse(content '<leaf>' || repeat('green ', 60) || '</leaf>'),
     to_json(repeat('tested ', 60)), repeat('No residues found. ', 20),
     array_fill('\xcafe'::bytea, array[50]), array_fill(12.50::numeric(8, 2), array[40]));
insert into reviews values
    (1, 'DARJ-100', 5, repeat('Tastes of muscat grapes. ', 16)),
    (2, 'MUG-01', 3, 'It leaks.');
insert into stock values ('VIE', 'DARJ-100', 40), ('VIE', 'MUG-01', 12), ('GRZ', 'DARJ-100', 5);
insert into carts values (1, 1), (2, 4);
insert into cart_lines values (1, 'MUG-01', 2), (2, 'SENCHA-50', 1);
insert into coupons values (1, 'SPRING', 10);
insert into "Gift Boxes" values (1, 'green', 19.90, 'a`b', 'groß', '桜'), (2, null, 24.00, '``', 'klein', null);
insert into "order" values ('Wien', 'Graz', 1);
insert into "Return.Slips" values (1, 'Broken');
insert into webhooks values (1, '{"schema":null,"payload":{"op":"d"}}', 'mail', 'x'), (2, 'plain "payload": text', null, null);
insert into page_views values ('v1', '/', '2024-03-01 08:00:00.000001'), ('v1', '/', '2024-03-01 08:00:00.000001');
insert into journal (note) values ('shop opened');

create type brew as enum ('green', 'black', 'oolong, dark');

create table all_types (
    id int primary key,
    c_smallint smallint,
    c_bigint bigint,
    c_numeric_10_2 numeric(10, 2),
    c_numeric_38_10 numeric(38, 10),
    c_numeric_5 numeric(5),
    c_numeric numeric,
    c_money money,
    c_real real,
    c_double double precision,
    c_boolean boolean,
    c_char char(5),
    c_varchar varchar(20),
    c_text text,
    c_bytea bytea,
    c_date date,
    c_time_0 time(0),
    c_time_3 time(3),
    c_time time,
    c_timetz timetz,
    c_timestamp_0 timestamp(0),
    c_timestamp_3 timestamp(3),
    c_timestamp timestamp,
    c_timestamptz timestamptz,
    c_interval interval,
    c_uuid uuid,
    c_json json,
    c_jsonb jsonb,
    c_xml xml,
    c_bit bit(1),
    c_bit_5 bit(5),
    c_varbit varbit(12),
    c_inet inet,
    c_cidr cidr,
    c_macaddr macaddr,
    c_macaddr8 macaddr8,
    c_int4range int4range,
    c_int8range int8range,
    c_numrange numrange,
    c_daterange daterange,
    c_tsrange tsrange,
    c_tstzrange tstzrange,
    c_hstore hstore,
    c_ints int[],
    c_bigints bigint[],
    c_texts text[],
    c_numerics numeric(8, 2)[],
    c_booleans boolean[],
    c_dates date[],
    c_timestamps timestamp[],
    c_timestamptzs timestamptz[],
    c_uuids uuid[],
    c_enum brew,
    c_enums brew[],
    c_point point,
    c_citext citext,
    c_ltree ltree,
    c_tsvector tsvector,
    c_oid oid
);

-- Not here: box and its like, which the connector leaves out.
-- 1 ordinary, 2 extreme, 3 NULL, 4 special values
insert into all_types values
    (1, 12, 1234567890123, 1234.50, 12345.0000000001, 42, 3.14159265358979, 99.95, 1.5, 0.1, true, 'ab', 'Tee', 'Grüner Tee',
     '\xdeadbeef', '2024-02-29', '12:34:56', '12:34:56.789', '12:34:56.789012', '12:34:56.789+02', '2024-02-29 12:34:56',
     '2024-02-29 12:34:56.789', '2024-02-29 12:34:56.789012', '2024-02-29 12:34:56.789012+01', '1 day 02:03:04.5',
     'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"b": 1, "a": [1.10, null]}', '{"b": 1, "a": [1.10, null]}', '<tea>green</tea>',
     '1', '10101', '1011', '192.168.1.5/24', '10.1.0.0/16', '08:00:2b:01:02:03', '08:00:2b:01:02:03:04:05', '[1,10)', '[1,10)',
     '[1.5,2.5]', '[2024-01-01,2024-02-01)', '["2024-01-01 00:00:00","2024-02-01 00:00:00")',
     '["2024-01-01 00:00:00+00","2024-02-01 00:00:00+00")', '"a"=>"1", "b"=>NULL', '{1,2,3}', '{1,9007199254740993}',
     '{a,"b c",NULL}', '{1.50,-2.25}', '{t,f}', '{2024-02-29,1969-12-31}', '{"2024-02-29 12:34:56.789012"}',
     '{"2024-02-29 12:34:56.789012+01"}', '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}', 'green', '{green,"oolong, dark"}', '(1.5,-2)',
     'Earl Grey', 'tea.green.sencha', to_tsvector('simple', 'green tea'), 12345),
    (2, -32768, -9223372036854775808, -99999999.99, -9999999999999999999999999999.9999999999, -99999,
     -123456789012345678901234567890123456789012345678901234567890.000000000000000001, '-92233720368547758.08', -3.4028235e38,
     -1.7976931348623157e308, false, '', '', E'line\nbreak\ttab "quote" back\\slash \u2028 \U0001F375', '\x', '4713-01-01 BC',
     '00:00', '23:59:59.999', '24:00:00', '00:00:00+15:59', '0001-01-01 00:00:00', '1969-12-31 23:59:59.999',
     '294276-12-31 23:59:59.999999', '0044-03-15 00:00:00+00 BC', '-1 year 2 mons -3 days 04:05:06.789',
     'ffffffff-ffff-ffff-ffff-ffffffffffff', '12345678901234567890.123456789', '{"n": 12345678901234567890.123456789}', '<a/>', '0',
     '11111', '', '::1', '::/0', 'ff:ff:ff:ff:ff:ff', 'ff:ff:ff:ff:ff:ff:ff:ff', 'empty', '(,)', '(,)', '(,)', '(,)', '(,)', '',
     '{}', '{-9223372036854775808,9223372036854775807}', '{}', '{-999999.99,NULL}', '{}', '{0001-01-01,9999-12-31}',
     '{"1969-12-31 23:59:59.999999"}', '{"9999-12-31 23:59:59.999999+00"}', '{}', 'oolong, dark', '{}', '(-1e300,1e300)',
     '', '', '', 4294967295),
    (4, 32767, 9223372036854775807, 0, 0, 0, 'NaN', '92233720368547758.07', 'NaN', 'Infinity', null, 'ÄÖÜß€', '',
     '__debezium_unavailable_value?', '\x00', 'infinity', '23:59:59', '00:00:00.001', '00:00:00.000001', '23:59:59.999999-15:59',
     'infinity', '-infinity', 'infinity', 'infinity', '178000000 years', '00000000-0000-0000-0000-000000000000', 'null', 'null', '',
     null, '00001', '000000000001', '0.0.0.0', '0.0.0.0/0', '00:00:00:00:00:00', '00:00:00:00:00:00:00:00', '[,5]', '[0,0]', '[0,)',
     '[-infinity,infinity]', '[-infinity,infinity]', '[-infinity,infinity]', '"k"=>"a\"b"', '{NULL}', '{NULL}', '{NULL,""}', '{NULL}',
     '{NULL}', '{infinity}', '{infinity}', '{-infinity}', '{NULL}', null, '{NULL}', '(Infinity,NaN)', 'ß', 'a', null, 0);
update all_types set c_date = '5874897-12-31' where id = 2;
insert into all_types (id) values (3);

-- chapter: monday
-- Streamed; the connector is stopped cleanly in the evening.

insert into customers values (5, 'Émile Girard', 'emile@example.org', false), (6, 'Fatou Diop', 'fatou@example.org', true);
insert into orders values (1004, 5, 'open', 31.40, '2024-03-04 08:15:00+01'), (1005, 6, 'open', 99999999.99, '2024-03-04 08:16:00+01');

begin;
insert into order_lines values (1004, 1, 'DARJ-100', 1), (1004, 2, 'MUG-01', 1), (1005, 1, 'SENCHA-50', 3);
update orders set status = 'paid' where order_id = 1004;
update orders set status = 'packed' where order_id = 1004;
commit;

-- Deleted and inserted again, once in two transactions, once in one.
delete from orders where order_id = 1003;
insert into orders values (1003, 3, 'reopened', 8.25, '2024-03-04 09:00:00+01');
begin;
delete from order_lines where order_id = 1004 and line_no = 2;
insert into order_lines values (1004, 2, 'ASSAM-250', 4);
commit;
delete from customers where customer_id = 4;

-- Key changes, also of a part of a key.
update customers set customer_id = 30 where customer_id = 3;
update order_lines set line_no = 9 where order_id = 1001 and line_no = 2;

-- Long values: not set, set, set to NULL; and a new key, under which no event carries them.
update products set price = 15.50 where sku = 'DARJ-100';
update products set description = repeat('Second flush, amber, of malt and honey. ', 12) where sku = 'DARJ-100';
update products set attributes = null, tags = null where sku = 'SENCHA-50';
update products set price = 10.20 where sku = 'SENCHA-50';
update products set price = 12.00, photo = null where sku = 'MUG-01';
insert into products values
    ('ASSAM-250', 8.40, repeat('Strong enough for milk. ', 25), jsonb_build_object('story', repeat('brahma ', 90)),
     decode(repeat('0badc0de', 160), 'hex'), array_fill('black'::text, array[60]));
update products set price = 8.60 where sku = 'ASSAM-250';
update products set sku = 'ASSAM-500' where sku = 'ASSAM-250';

update certificates set status = 'checked' where certificate_id = 1;
update certificates set status = 'revoked', modulus = null, serials = '{7}', labels = 'grower=>unknown' where certificate_id = 1;

update reviews set stars = 4 where review_id = 1;
update reviews set body = null where review_id = 2;
delete from reviews where review_id = 2;

insert into "Gift Boxes" values (3, 'new', 30.00, '`', 'riesig', '梅');
update "Gift Boxes" set "Größe" = 'mittel', "price.net" = 21.00 where "Box Id" = 1;
update "Gift Boxes" set "Box Id" = 20 where "Box Id" = 2;
update "order" set "to" = 'Linz', "group" = null where "from" = 'Wien';
update "Return.Slips" set "Reason" = 'Wrong size' where "Slip.No" = 1;
update webhooks set payload = '{"before":null,"payload":"\u0022payload\u0022:"}', op = 'c' where hook_id = 2;

insert into page_views values ('v2', '/tea', '2024-03-04 10:00:00'), ('v1', '/', '2024-03-01 08:00:00.000001');
update page_views set path = '/cart' where visitor = 'v2';
delete from page_views where visitor = 'v1' and ctid = (select min(ctid) from page_views where visitor = 'v1');

insert into archive.orders values (1002, '2024-03-06', 'cancelled');
update archive.orders set remark = 'delivered' where order_id = 1001;
delete from archive.orders where order_id = 900;

-- The rows of the snapshot once more, as the log carries them.
create temporary table copies as select * from all_types where id <> 3;
update copies set id = id + 10;
insert into all_types table copies;

-- Columns come and go; rows that no update touches send no event.
alter table customers add column country char(2) not null default 'AT', add column phone text;
update customers set phone = '+43 1 000000' where customer_id in (1, 2);
insert into customers values (7, 'Gustav Lang', 'gustav@example.org', false, 'DE', null);
update customers set country = 'FR' where customer_id = 5;

alter table webhooks drop column source;
update webhooks set op = 'u' where hook_id = 1;
insert into webhooks values (3, null, 'r');

select pg_logical_emit_message(true, 'shop', 'till counted');
insert into journal (note) values ('monday closed');

-- chapter: tuesday
-- The connector is killed inside the stock-taking.

-- Two customers swap their numbers through a third.
begin;
update customers set customer_id = 0 where customer_id = 1;
update customers set customer_id = 1 where customer_id = 2;
update customers set customer_id = 2 where customer_id = 0;
commit;

begin;
update stock set amount = 38 where depot = 'VIE' and sku = 'DARJ-100';
insert into stock values ('VIE', 'BOX-01', 1), ('VIE', 'BOX-02', 2);
update stock set amount = 11 where depot = 'VIE' and sku = 'MUG-01';
insert into stock values ('VIE', 'BOX-03', 3), ('VIE', 'BOX-04', 4);
delete from stock where depot = 'GRZ';
update stock set sku = 'BOX-10' where sku = 'BOX-01';
commit;

-- chapter: tuesday night
-- The connector is down.

truncate stock;
insert into stock values ('VIE', 'DARJ-100', 100), ('LNZ', 'BOX-02', 20);
update orders set status = 'shipped' where order_id = 1004;
delete from orders where order_id = 1002;
insert into journal (note) values ('tuesday closed');

-- chapter: wednesday
-- The connector is killed in the evening, with offsets that lag behind. Two tables are emptied by one statement.

insert into carts values (3, 5);
insert into cart_lines values (3, 'DARJ-100', 1);
truncate carts, cart_lines;
insert into carts values (1, 30), (4, 6);
insert into cart_lines values (4, 'MUG-01', 6);

-- chapter: wednesday evening
-- After the race for coupon 5, which takes two sessions: see `capture.py`.

insert into coupons values (7, 'LATE', 20);
update coupons set percent = 25 where coupon_id = 7;
insert into journal (note) values ('wednesday closed');

-- chapter: thursday
-- While three tables are read once more (an incremental snapshot), their rows change.

insert into debezium_signal values (
    'again', 'execute-snapshot',
    '{"type": "incremental", "data-collections": ["public.stock", "public.customers", "public.products"]}'
);
update products set price = 16.00, photo = decode(repeat('c0ffee00', 150), 'hex') where sku = 'DARJ-100';
update products set tags = '{green,spring}' where sku = 'SENCHA-50';
update reviews set stars = 5 where review_id = 1;
update orders set status = 'returned' where order_id = 1004;
delete from "Gift Boxes" where "Box Id" = 3;
delete from webhooks where hook_id = 2;
update order_lines set quantity = 2 where order_id = 1005;
update customers set vip = true where customer_id in (2, 6);
insert into journal (note) values ('thursday closed');
