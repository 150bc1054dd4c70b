{{ config(schema = 'mongodb', alias = 'beds') }}

{{ debezium_live(silver = ref('mongodb__beds')) }}
