{{ config(schema = 'sqlserver', alias = 'subscriptions') }}

{{ debezium_live(silver = ref('sqlserver__subscriptions')) }}
