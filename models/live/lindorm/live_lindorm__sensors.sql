{{ config(schema = 'lindorm', alias = 'sensors') }}

{{ debezium_live(silver = ref('lindorm__sensors')) }}
