{{ debezium_transactions(events = source('bronze', 'oracle')) }}
