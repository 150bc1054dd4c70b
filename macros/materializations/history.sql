{#- Writing a history (`debezium_history`). -#}

{#- Versions that are known from now on. -#}
{% macro _with_knowledge(versions, bounds) -%}
select
    *,
    _cdc_end_position is null as _cdc_is_current,
    cast({{ bounds.up_to }} as bigint) as _cdc_known_from,
    cast(null as bigint) as _cdc_known_to,
    cast({{ _literal_or_null(bounds.known_at) }} as timestamp) as _cdc_known_from_at,
    cast(null as timestamp) as _cdc_known_to_at
from ({{ versions }}) as versions
{%- endmacro %}

{#-
    Versions that are not true any more get an end of knowledge, new ones begin; a key's version is known by its first
    position.
-#}
{% macro _write_history(bounds) -%}
    {%- do _store_with_next_commit(bounds) -%}
    {%- call statement('main') -%}
        merge into {{ this }} as stored
        using ({{ _with_knowledge(sql, bounds) }}) as incoming
        on
            not incoming._cdc_is_new
            and stored._cdc_known_to is null
            and {{ _quoted_list(bounds.get('keys'), 'stored.{} = incoming.{}', ' and ') }}
            and stored._cdc_position = incoming._cdc_position
        when matched then update set _cdc_known_to = {{ bounds.up_to }},
            _cdc_known_to_at = incoming._cdc_known_from_at, _cdc_is_current = false
        when not matched and incoming._cdc_is_new then insert ({{ _quoted_list(_history_columns(bounds)) }})
            values ({{ _quoted_list(_history_columns(bounds), 'incoming.{}') }})
    {%- endcall -%}
    {%- do _store_with_next_commit(none) -%}
{%- endmacro %}

{% macro _history_columns(bounds) -%}
    {{ return(bounds.columns + _version_columns() + ['_cdc_is_current', '_cdc_known_from', '_cdc_known_to',
        '_cdc_known_from_at', '_cdc_known_to_at']) }}
{%- endmacro %}
