{#-
    A MERGE in which every column is decided by the positions of its writes. Where the newer row counts as a whole
    (`is_narrow`) only the keys and positions of stored rows are read.

    `_cdc_held` gives the position of a column's write where it is older than the row's; an incoming row that is older
    as a whole may still supply such a column, and nothing else of it counts. A column of `patched` is what the patches
    of both make of it. Where some rows passed keys on (`is_moved`), what both rows know of it decides whether one is
    there.
-#}
{% macro debezium_merge_sql(target, source, keys, columns, patched=[], is_moved=false, is_narrow=false) -%}
    {%- set metadata = metadata_columns() -%}
    {%- set has_moves = 'coalesce(stored._cdc_moves, incoming._cdc_moves) is not null' -%}
merge into {{ target }} as stored
using {{ source }} as incoming
on {{ _quoted_list(keys, 'stored.{} <=> incoming.{}', ' and ') }}
{%- if is_narrow %}
when matched and incoming._cdc_position > stored._cdc_position then update set *
{%- else %}
when matched and (
    incoming._cdc_position > stored._cdc_position
    or exists(
        map_entries(stored._cdc_held),
        held -> held.value < coalesce(incoming._cdc_held[held.key], incoming._cdc_position)
    )
    {%- if patched %}
    or exists(incoming._cdc_patches, p -> p.position > coalesce(stored._cdc_held[p.name], stored._cdc_position))
    {%- endif %}
    {%- if is_moved %}
    or {{ has_moves }}
    {%- endif %}
) then update set
    {%- set patches = [] %}
    {%- for name in columns if name in patched %}
    {%- do patches.append(_merged_patches(name)) %}
    {{ quoted(name) }} = {{ patched_value(patches[-1]) }},
    {%- endfor %}
    {%- if patched %}
    _cdc_patches = {{ patches_of_row(patches) }},
    {%- endif %}
    {%- for name in columns if name not in keys + patched %}
    {{ quoted(name) }} = if(
        {{ _write_position('incoming', name, is_moved) }} > {{ _write_position('stored', name, is_moved) }},
            incoming.{{ quoted(name) }}, stored.{{ quoted(name) }}
    ),
    {%- endfor %}
    {%- for name in metadata %}
    {%- set newer = 'if(incoming._cdc_position > stored._cdc_position, incoming.' ~ name ~ ', stored.' ~ name ~ ')' %}
    {{ name }} = {{ 'if(' ~ has_moves ~ ', ' ~ _of_shown_write(name, _merged_write()) ~ ', ' ~ newer
        ~ ')' if is_moved else newer }},
    {%- endfor %}
    {%- if is_moved %}
    _cdc_moves = if({{ has_moves }}, {{ _moves_of_row(_merged_moves(), _newer_of('row'), _newer_of('out')) }}, null),
    {%- endif %}
    _cdc_held = {{ _merged_held(is_moved) }}
{%- endif %}
when not matched then insert *
{%- endmacro %}

{% macro _write_position(row, column, is_moved=false) -%}
    coalesce({{ row }}._cdc_held[{{ literal(column) }}], {{ _row_position(row, is_moved) }})
{%- endmacro %}

{#- The position of the event that the columns of a row are of. -#}
{% macro _row_position(row, is_moved) -%}
    {{ 'coalesce(' ~ row ~ '._cdc_moves.`row`._cdc_position, ' ~ row ~ '._cdc_position)' if is_moved else row
        ~ '._cdc_position' }}
{%- endmacro %}

{#- What both rows know of the changes under their key, in order. -#}
{% macro _merged_moves() -%}
    {%- set of_rows = [] -%}
    {%- for row in ('stored', 'incoming') -%}
        {%- do of_rows.append('coalesce(' ~ row ~ '._cdc_moves.events, array(' ~ _moves_event(row) ~ '))') -%}
    {%- endfor -%}
    array_sort(array_union({{ of_rows | join(', ') }}))
{%- endmacro %}

{#- The newer write of both rows; `which` is a member of `_cdc_moves`. -#}
{% macro _newer_of(which) -%}
    {%- set of_rows = [] -%}
    {%- for row in ('stored', 'incoming') -%}
        {%- set write = row ~ '._cdc_moves.' ~ quoted(which) -%}
        {%- do of_rows.append('coalesce(' ~ write ~ ', ' ~ _moves_write(row) ~ ')' if which == 'row' else write) -%}
    {%- endfor -%}
    greatest({{ of_rows | join(', ') }})
{%- endmacro %}

{% macro _merged_write() -%}
    {{ _shown_write(_newer_of('row'), _newer_of('out'), _merged_moves()) }}
{%- endmacro %}

{% macro _of_shown_write(name, write) -%}
    {{ write ~ "._cdc_op = 'd'" if name == '_cdc_is_deleted' else write ~ '.' ~ name }}
{%- endmacro %}

{#-
    A column of JSON as both rows have it. The write of the whole is the first patch, where a row keeps any of the
    column.
-#}
{% macro _merged_patches(name) -%}
    {%- set of_rows = [] -%}
    {%- for row in ('stored', 'incoming') -%}
        {%- set of_column = 'filter(' ~ row ~ '._cdc_patches, p -> p.name = ' ~ literal(name) ~ ')' -%}
        {%- do of_rows.append('if(size(' ~ of_column ~ ') > 0, ' ~ of_column ~ ', ' ~ written_patches(row, name, none)
            ~ ')') -%}
    {%- endfor -%}
    {{ pruned_patches('concat(' ~ of_rows | join(', ') ~ ')') }}
{%- endmacro %}

{#- The columns of the merged row whose write is older than the row, each with the position of that write. -#}
{% macro _merged_held(is_moved=false) -%}
    {%- set incoming, stored = _row_position('incoming', is_moved), _row_position('stored', is_moved) -%}
    {%- set columns = 'array_union(coalesce(map_keys(incoming._cdc_held), array()), '
        ~ 'coalesce(map_keys(stored._cdc_held), array()))' -%}
    {%- set entries -%}
        map_filter(
            map_from_arrays({{ columns }}, transform({{ columns }}, c -> greatest(
                coalesce(incoming._cdc_held[c], {{ incoming }}), coalesce(stored._cdc_held[c], {{ stored }})
            ))),
            (c, position) -> position < greatest({{ incoming }}, {{ stored }})
        )
    {%- endset -%}
    case
        when incoming._cdc_held is null and (stored._cdc_held is null or {{ incoming }} > {{ stored }}) then null
        when size({{ entries }}) = 0 then null
        else {{ entries }}
    end
{%- endmacro %}
