{{ debezium_transactions(events = source('bronze', 'tencent')) }}
