{{ config(schema = 'mongodb', alias = 'readings') }}

{{ debezium_live(silver = ref('mongodb__readings')) }}
