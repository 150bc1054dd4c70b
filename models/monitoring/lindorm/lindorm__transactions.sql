{{ debezium_transactions(events = source('bronze', 'lindorm')) }}
