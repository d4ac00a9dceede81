-- Every change of the warehouse's inventory, as Debezium sends it. Columns are as the messages' schemas say.
CREATE OR REFRESH STREAMING TABLE bronze.inventory
COMMENT 'Every change of depot.inventory'
AS SELECT * FROM STREAM read_kafka(
  subscribe => '${depot_prefix}.${depot_database}.inventory',
  decode => 'debezium',
  feed => 'depot_inventory'
);
