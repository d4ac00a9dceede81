import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A catalogue of tables in memory that Spark can MERGE into.
 *
 * <p>AUTO CDC refuses a target without row-level operations, and Spark brings no table that has them. This is the least there can be:
 * a table is a list of rows, and a row-level operation reads all of them and puts what Spark makes of them in their place. Every
 * decision stays Spark's. All sessions of the process see the same tables.
 */
public final class RowTables implements TableCatalog, SupportsNamespaces {
  private static final Map<Identifier, RowTable> TABLES = new ConcurrentHashMap<>();
  private static final Set<String> NAMESPACES = ConcurrentHashMap.newKeySet();
  private String name;

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    NAMESPACES.add("default");
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public String[] defaultNamespace() {
    return new String[] {"default"};
  }

  @Override
  public Identifier[] listTables(String[] namespace) {
    return TABLES.keySet().stream().filter(table -> List.of(table.namespace()).equals(List.of(namespace))).toArray(Identifier[]::new);
  }

  @Override
  public Table loadTable(Identifier identifier) throws NoSuchTableException {
    RowTable table = TABLES.get(identifier);
    if (table == null) throw new NoSuchTableException(identifier);
    return table;
  }

  @Override
  public Table createTable(Identifier identifier, TableInfo info) throws TableAlreadyExistsException {
    RowTable table = new RowTable(identifier.toString(), info.columns(), info.properties());
    if (TABLES.putIfAbsent(identifier, table) != null) throw new TableAlreadyExistsException(identifier);
    return table;
  }

  /** Takes properties; a change of columns is not needed here. */
  @Override
  public Table alterTable(Identifier identifier, TableChange... changes) throws NoSuchTableException {
    RowTable table = (RowTable) loadTable(identifier);
    for (TableChange change : changes) {
      if (change instanceof TableChange.SetProperty set) table.properties.put(set.property(), set.value());
      else if (change instanceof TableChange.RemoveProperty remove) table.properties.remove(remove.property());
      else throw new UnsupportedOperationException(identifier + ": " + change.getClass().getName());
    }
    return table;
  }

  @Override
  public boolean dropTable(Identifier identifier) {
    return TABLES.remove(identifier) != null;
  }

  @Override
  public void renameTable(Identifier from, Identifier to) {
    throw new UnsupportedOperationException("rename");
  }

  @Override
  public String[][] listNamespaces() {
    return NAMESPACES.stream().map(namespace -> new String[] {namespace}).toArray(String[][]::new);
  }

  @Override
  public String[][] listNamespaces(String[] namespace) {
    return new String[0][];
  }

  @Override
  public boolean namespaceExists(String[] namespace) {
    return namespace.length == 1 && NAMESPACES.contains(namespace[0]);
  }

  @Override
  public Map<String, String> loadNamespaceMetadata(String[] namespace) {
    return Map.of();
  }

  @Override
  public void createNamespace(String[] namespace, Map<String, String> metadata) {
    NAMESPACES.add(namespace[0]);
  }

  @Override
  public void alterNamespace(String[] namespace, NamespaceChange... changes) {
    throw new UnsupportedOperationException("alter namespace");
  }

  @Override
  public boolean dropNamespace(String[] namespace, boolean cascade) {
    return NAMESPACES.remove(namespace[0]);
  }

  /** A list of rows, all in one partition. */
  private static final class RowTable implements SupportsRead, SupportsWrite, SupportsRowLevelOperations {
    private final String name;
    private final Column[] columns;
    private final StructType schema;
    private final Map<String, String> properties;
    private volatile List<UnsafeRow> rows = List.of();

    RowTable(String name, Column[] columns, Map<String, String> properties) {
      this.name = name;
      this.columns = columns;
      this.schema = CatalogV2Util.v2ColumnsToStructType(columns);
      this.properties = new HashMap<>(properties);
    }

    @Override
    public String name() {
      return name;
    }

    @Override
    public Column[] columns() {
      return columns;
    }

    @Override
    public Map<String, String> properties() {
      return properties;
    }

    @Override
    public Set<TableCapability> capabilities() {
      return EnumSet.of(TableCapability.BATCH_READ, TableCapability.BATCH_WRITE, TableCapability.TRUNCATE);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      return () -> new RowScan(schema, new Rows(rows));
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
      return new RowWriteBuilder(this, info.schema(), false);
    }

    @Override
    public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
      RowTable table = this;
      return () -> new RowLevelOperation() {
        @Override
        public Command command() {
          return info.command();
        }

        @Override
        public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
          return table.newScanBuilder(options);
        }

        @Override
        public WriteBuilder newWriteBuilder(LogicalWriteInfo write) {
          return new RowWriteBuilder(table, write.schema(), true);
        }
      };
    }

    private synchronized void commit(WriterCommitMessage[] messages, boolean replaces) {
      List<UnsafeRow> next = replaces ? new ArrayList<>() : new ArrayList<>(rows);
      for (WriterCommitMessage message : messages) next.addAll(((Rows) message).rows());
      rows = next;
    }
  }

  /** Rows on their way to a reader or from a writer. */
  private record Rows(ArrayList<UnsafeRow> rows) implements InputPartition, WriterCommitMessage {
    Rows(List<UnsafeRow> rows) {
      this(new ArrayList<>(rows));
    }
  }

  private record RowScan(StructType schema, Rows rows) implements Scan, Batch {
    @Override
    public StructType readSchema() {
      return schema;
    }

    @Override
    public Batch toBatch() {
      return this;
    }

    @Override
    public InputPartition[] planInputPartitions() {
      return new InputPartition[] {rows};
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
      return new RowReaderFactory();
    }
  }

  private static final class RowReaderFactory implements PartitionReaderFactory {
    private static final long serialVersionUID = 1;

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      List<UnsafeRow> rows = ((Rows) partition).rows();
      return new PartitionReader<>() {
        private int at = -1;

        @Override
        public boolean next() {
          return ++at < rows.size();
        }

        @Override
        public InternalRow get() {
          return rows.get(at);
        }

        @Override
        public void close() {}
      };
    }
  }

  private record RowWriteBuilder(RowTable table, StructType schema, boolean replaces) implements SupportsTruncate {
    @Override
    public WriteBuilder truncate() {
      return new RowWriteBuilder(table, schema, true);
    }

    @Override
    public Write build() {
      return new Write() {
        @Override
        public BatchWrite toBatch() {
          return new RowWrite(table, schema, replaces);
        }
      };
    }
  }

  private record RowWrite(RowTable table, StructType schema, boolean replaces) implements BatchWrite {
    @Override
    public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
      return new RowWriterFactory(schema);
    }

    @Override
    public void commit(WriterCommitMessage[] messages) {
      table.commit(messages, replaces);
    }

    @Override
    public void abort(WriterCommitMessage[] messages) {}
  }

  private record RowWriterFactory(StructType schema) implements DataWriterFactory {
    @Override
    public DataWriter<InternalRow> createWriter(int partition, long task) {
      UnsafeProjection projection = UnsafeProjection.create(schema);
      ArrayList<UnsafeRow> rows = new ArrayList<>();
      return new DataWriter<>() {
        @Override
        public void write(InternalRow row) {
          rows.add(projection.apply(row).copy());
        }

        @Override
        public WriterCommitMessage commit() {
          return new Rows(rows);
        }

        @Override
        public void abort() {}

        @Override
        public void close() {}
      };
    }
  }
}
