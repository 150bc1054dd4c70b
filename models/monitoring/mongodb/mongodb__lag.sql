{{ debezium_lag(
    events = source('bronze', 'mongodb'),
    tables = {
        'greenhouse.beds': [ref('stg_mongodb__beds'), ref('mongodb__beds')],
        'greenhouse.readings': [ref('stg_mongodb__readings'), ref('mongodb__readings')],
    },
) }}
