{{ debezium_ddl_history(events = source('bronze', 'sources')) }}
