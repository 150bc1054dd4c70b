{{ debezium_transactions(events = source('bronze', 'mongodb')) }}
