{{ config(schema = 'sources', alias = 'src_flattened') }}

{{ debezium_live(silver = ref('sources__src_flattened')) }}
