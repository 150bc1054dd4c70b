{{ debezium_transactions(events = source('bronze', 'shop')) }}
