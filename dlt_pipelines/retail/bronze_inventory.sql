-- Every change of the warehouse's inventory, as Debezium recorded it. Columns not declared are as the messages' schemas say.
CREATE OR REFRESH STREAMING TABLE bronze.inventory (
  sku       STRING,
  warehouse INT,
  qty_total DECIMAL(20,0) COMMENT 'BIGINT UNSIGNED'
)
COMMENT 'Every change of wh.depot.inventory'
AS SELECT * FROM STREAM read_files(
  'depot',
  format => 'kafka_jsonl',
  topics => 'wh.depot.inventory',
  feed => 'depot_inventory',
  schemaEvolutionMode => 'addNewColumnsWithTypeWidening',
  encodings => 'qty_total unsigned'
);
