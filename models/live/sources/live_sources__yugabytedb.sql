{{ config(schema = 'sources', alias = 'yugabytedb') }}

{{ debezium_live(silver = ref('sources__yugabytedb')) }}
