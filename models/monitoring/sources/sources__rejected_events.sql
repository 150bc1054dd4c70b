{{ config(materialized = 'incremental', incremental_strategy = 'debezium_merge', file_format = 'iceberg') }}

{{ debezium_rejected_events(
    events = source('bronze', 'sources'),
    tables = {
        'd.carts': [ref('stg_sources__carts'), ref('sources__carts')],
        'ks.cassandra': [ref('stg_sources__cassandra'), ref('sources__cassandra')],
        'd.public.cockroachdb': [ref('stg_sources__cockroachdb'), ref('sources__cockroachdb')],
        'DB2INST1.db2': [ref('stg_sources__db2'), ref('sources__db2')],
        'd.informix.informix': [ref('stg_sources__informix'), ref('sources__informix')],
        'd.lines': [ref('stg_sources__lines'), ref('sources__lines')],
        'public.opengauss': [ref('stg_sources__opengauss'), ref('sources__opengauss')],
        'public.pgoutput': [ref('stg_sources__pgoutput'), ref('sources__pgoutput')],
        'database.spanner': [ref('stg_sources__spanner'), ref('sources__spanner')],
        'src.flattened': [ref('stg_sources__src_flattened'), ref('sources__src_flattened')],
        'src.ibmi': [ref('stg_sources__src_ibmi'), ref('sources__src_ibmi')],
        'test.ticdc': [ref('stg_sources__ticdc'), ref('sources__ticdc')],
        'commerce.vitess': [ref('stg_sources__vitess'), ref('sources__vitess')],
        'APP.yashandb': [ref('stg_sources__yashandb'), ref('sources__yashandb')],
        'public.yboutput': [ref('stg_sources__yboutput'), ref('sources__yboutput')],
        'public.yugabytedb': [ref('stg_sources__yugabytedb'), ref('sources__yugabytedb')],
    },
) }}
