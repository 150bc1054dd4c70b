{{ debezium_lag(
    events = source('bronze', 'lindorm'),
    tables = {
        'ld-demo01.energy.meters': [ref('stg_lindorm__meters'), ref('lindorm__meters')],
        'ld-demo01.default.sensors': [ref('stg_lindorm__sensors'), ref('lindorm__sensors')],
    },
) }}
