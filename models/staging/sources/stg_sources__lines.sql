{{ debezium_changes(
    events = ref('sources__events'),
    topics = ['flink'],
    connector = 'generic',
    table = ['d', 'lines'],
    keys = ['id'],
    columns = {
        'id': 'int64',
        'note': 'string',
    },
    routed = true,
) }}
