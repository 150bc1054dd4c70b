{{ config(schema = 'billing', alias = 'reminders') }}

{{ debezium_live(silver = ref('billing__reminders')) }}
