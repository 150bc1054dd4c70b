{{ debezium_transactions(events = source('bronze', 'billing')) }}
