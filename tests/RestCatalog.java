import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.NamespaceNotEmptyException;
import org.apache.iceberg.exceptions.NoSuchNamespaceException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.exceptions.NoSuchViewException;
import org.apache.iceberg.exceptions.ValidationException;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.CatalogHandlers;
import org.apache.iceberg.rest.Endpoint;
import org.apache.iceberg.rest.RESTCatalogProperties.SnapshotMode;
import org.apache.iceberg.rest.RESTSerializers;
import org.apache.iceberg.rest.RESTUtil;
import org.apache.iceberg.rest.requests.CreateNamespaceRequest;
import org.apache.iceberg.rest.requests.CreateTableRequest;
import org.apache.iceberg.rest.requests.CreateViewRequest;
import org.apache.iceberg.rest.requests.RenameTableRequest;
import org.apache.iceberg.rest.requests.UpdateNamespacePropertiesRequest;
import org.apache.iceberg.rest.requests.UpdateTableRequest;
import org.apache.iceberg.rest.responses.ConfigResponse;
import org.apache.iceberg.rest.responses.ErrorResponse;
import org.apache.iceberg.shaded.com.fasterxml.jackson.annotation.JsonAutoDetect;
import org.apache.iceberg.shaded.com.fasterxml.jackson.annotation.PropertyAccessor;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.DeserializationFeature;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.PropertyNamingStrategies;

/**
 * An Iceberg REST catalog over Iceberg's own JDBC catalog, as the tests need one. Arguments: port, then name=value of the JDBC catalog.
 * Source of the paths: Iceberg's rest-catalog-open-api.yaml.
 */
public class RestCatalog {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final List<Endpoint> ENDPOINTS =
      List.of(
          Endpoint.V1_LIST_NAMESPACES,
          Endpoint.V1_LOAD_NAMESPACE,
          Endpoint.V1_CREATE_NAMESPACE,
          Endpoint.V1_UPDATE_NAMESPACE,
          Endpoint.V1_DELETE_NAMESPACE,
          Endpoint.V1_LIST_TABLES,
          Endpoint.V1_LOAD_TABLE,
          Endpoint.V1_CREATE_TABLE,
          Endpoint.V1_UPDATE_TABLE,
          Endpoint.V1_DELETE_TABLE,
          Endpoint.V1_RENAME_TABLE,
          Endpoint.V1_REPORT_METRICS,
          Endpoint.V1_LIST_VIEWS,
          Endpoint.V1_LOAD_VIEW,
          Endpoint.V1_CREATE_VIEW,
          Endpoint.V1_UPDATE_VIEW,
          Endpoint.V1_DELETE_VIEW,
          Endpoint.V1_RENAME_VIEW);
  private static JdbcCatalog catalog;

  public static void main(String[] arguments) throws IOException {
    JSON.setVisibility(PropertyAccessor.FIELD, JsonAutoDetect.Visibility.ANY);
    JSON.configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false);
    JSON.setPropertyNamingStrategy(new PropertyNamingStrategies.KebabCaseStrategy());
    RESTSerializers.registerAll(JSON);
    Map<String, String> properties = new HashMap<>();
    for (String argument : List.of(arguments).subList(1, arguments.length)) {
      properties.put(argument.substring(0, argument.indexOf('=')), argument.substring(argument.indexOf('=') + 1));
    }
    catalog = new JdbcCatalog();
    catalog.initialize("rest", properties);
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])), 0);
    server.createContext("/", RestCatalog::handle);
    server.setExecutor(Executors.newFixedThreadPool(8));
    server.start();
  }

  private static void handle(HttpExchange exchange) throws IOException {
    int status = 200;
    Object answer;
    try {
      answer = answer(exchange);
      status = answer == null ? 204 : 200;
    } catch (Exception error) {
      status = status(error);
      answer = ErrorResponse.builder().responseCode(status).withType(error.getClass().getSimpleName())
          .withMessage(String.valueOf(error.getMessage())).build();
    }
    boolean isBare = answer == null || exchange.getRequestMethod().equals("HEAD");
    byte[] body = isBare ? new byte[0] : JSON.writeValueAsBytes(answer);
    exchange.getResponseHeaders().add("Content-Type", "application/json");
    exchange.sendResponseHeaders(status, isBare ? -1 : body.length);
    exchange.getResponseBody().write(body);
    exchange.close();
  }

  private static int status(Exception error) {
    if (error instanceof NoSuchNamespaceException || error instanceof NoSuchTableException || error instanceof NoSuchViewException) {
      return 404;
    }
    if (error instanceof AlreadyExistsException || error instanceof CommitFailedException || error instanceof NamespaceNotEmptyException) {
      return 409;
    }
    return error instanceof ValidationException || error instanceof IllegalArgumentException ? 400 : 500;
  }

  private static <T> T body(HttpExchange exchange, Class<T> type) throws IOException {
    return JSON.readValue(exchange.getRequestBody(), type);
  }

  private static Object answer(HttpExchange exchange) throws IOException {
    String[] path = exchange.getRequestURI().getRawPath().substring(1).split("/");
    String what = path[path.length > 3 ? 3 : 1];
    String of = exchange.getRequestMethod();
    if (path[1].equals("config")) {
      return ConfigResponse.builder().withEndpoints(ENDPOINTS).build();
    }
    if (path.length == 3 && path[2].equals("rename")) {
      RenameTableRequest names = body(exchange, RenameTableRequest.class);
      if (path[1].equals("views")) {
        CatalogHandlers.renameView(catalog, names);
      } else {
        CatalogHandlers.renameTable(catalog, names);
      }
      return null;
    }
    Namespace namespace = path.length > 2 ? RESTUtil.decodeNamespace(path[2], "%1F") : Namespace.empty();
    if (path.length < 4) {
      return ofNamespaces(exchange, of, namespace, path.length == 2);
    }
    if (what.equals("properties")) {
      return CatalogHandlers.updateNamespaceProperties(catalog, namespace, body(exchange, UpdateNamespacePropertiesRequest.class));
    }
    if (path.length > 5) { // metrics
      return null;
    }
    TableIdentifier name =
        path.length == 5 ? TableIdentifier.of(namespace, URLDecoder.decode(path[4], StandardCharsets.UTF_8)) : null;
    return what.equals("views") ? ofViews(exchange, of, namespace, name) : ofTables(exchange, of, namespace, name);
  }

  private static Object ofNamespaces(HttpExchange exchange, String of, Namespace namespace, boolean isList) throws IOException {
    if (isList) {
      return of.equals("POST")
          ? CatalogHandlers.createNamespace(catalog, body(exchange, CreateNamespaceRequest.class))
          : CatalogHandlers.listNamespaces(catalog, Namespace.empty());
    }
    if (of.equals("DELETE")) {
      CatalogHandlers.dropNamespace(catalog, namespace);
      return null;
    }
    return CatalogHandlers.loadNamespace(catalog, namespace);
  }

  private static Object ofTables(HttpExchange exchange, String of, Namespace namespace, TableIdentifier name) throws IOException {
    if (name == null && of.equals("GET")) {
      return CatalogHandlers.listTables(catalog, namespace);
    }
    if (name == null) {
      CreateTableRequest request = body(exchange, CreateTableRequest.class);
      return request.stageCreate()
          ? CatalogHandlers.stageTableCreate(catalog, namespace, request)
          : CatalogHandlers.createTable(catalog, namespace, request);
    }
    switch (of) {
      case "POST":
        return CatalogHandlers.updateTable(catalog, name, body(exchange, UpdateTableRequest.class));
      case "DELETE":
        CatalogHandlers.dropTable(catalog, name);
        return null;
      default:
        return CatalogHandlers.loadTable(catalog, name, SnapshotMode.ALL);
    }
  }

  private static Object ofViews(HttpExchange exchange, String of, Namespace namespace, TableIdentifier name) throws IOException {
    if (name == null) {
      return of.equals("GET")
          ? CatalogHandlers.listViews(catalog, namespace)
          : CatalogHandlers.createView(catalog, namespace, body(exchange, CreateViewRequest.class));
    }
    switch (of) {
      case "POST":
        return CatalogHandlers.updateView(catalog, name, body(exchange, UpdateTableRequest.class));
      case "DELETE":
        CatalogHandlers.dropView(catalog, name);
        return null;
      default:
        return CatalogHandlers.loadView(catalog, name);
    }
  }
}
