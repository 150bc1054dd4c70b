{{ debezium_transactions(events = source('bronze', 'sqlserver')) }}
