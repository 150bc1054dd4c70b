{{ debezium_transactions(events = source('bronze', 'huawei')) }}
