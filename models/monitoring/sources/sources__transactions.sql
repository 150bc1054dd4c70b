{{ debezium_transactions(events = source('bronze', 'sources')) }}
