{{ config(schema = 'billing', alias = 'job_log') }}

{{ debezium_live(silver = ref('billing__job_log')) }}
