import com.fasterxml.jackson.databind.ObjectMapper;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.Header;
import io.debezium.engine.format.Json;
import io.debezium.engine.format.KeyValueHeaderChangeEventFormat;
import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

/**
 * One run of a Debezium engine that appends every record to a file, a JSON object a line.
 *
 * <p>Arguments: the properties of the engine, the file of records. Two properties are this program's own:
 * {@code capture.flush.every}, the number of records after which offsets are flushed (what lies behind it is
 * redelivered after a crash), and {@code capture.pause.ms}, a pause after each record, which leaves time to
 * kill the engine inside a transaction. Stops cleanly on SIGTERM; exits with 1 when the engine fails.
 */
public class CaptureEngine {

    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        try (var reader = Files.newBufferedReader(Path.of(args[0]))) {
            settings.load(reader);
        }
        long flushEvery = Long.parseLong((String) settings.remove("capture.flush.every"));
        long pause = Long.parseLong((String) settings.remove("capture.pause.ms"));

        Writer out = Files.newBufferedWriter(
                Path.of(args[1]), StandardCharsets.UTF_8, StandardOpenOption.CREATE, StandardOpenOption.APPEND);

        // The plain Json format of the engine drops headers; this one keeps them.
        DebeziumEngine<ChangeEvent<String, String>> engine = DebeziumEngine
                .create(KeyValueHeaderChangeEventFormat.of(Json.class, Json.class, Json.class))
                .using(settings)
                .using((unflushed, elapsed) -> unflushed >= flushEvery)
                .using((success, message, error) -> {
                    if (!success) {
                        System.err.println("engine failed: " + message);
                        if (error != null) {
                            error.printStackTrace();
                        }
                        Runtime.getRuntime().halt(1);
                    }
                })
                .notifying((records, committer) -> {
                    for (ChangeEvent<String, String> record : records) {
                        append(out, record);
                        Thread.sleep(pause);
                        committer.markProcessed(record);
                    }
                    committer.markBatchFinished();
                })
                .build();

        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                engine.close();
            } catch (IOException | IllegalStateException error) {
                System.err.println("engine did not close: " + error);
            }
        }));
        engine.run();
    }

    /** The members that Kafka would have stored; the time is the one at which a producer would have sent it. */
    private static void append(Writer out, ChangeEvent<String, String> record) {
        List<Map<String, String>> headers = new ArrayList<>();
        for (Header<?> header : record.<String>headers()) {
            Map<String, String> entry = new LinkedHashMap<>();
            entry.put("key", header.getKey());
            entry.put("value", (String) header.getValue());
            headers.add(entry);
        }
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("topic", record.destination());
        line.put("timestamp", System.currentTimeMillis());
        line.put("headers", headers);
        line.put("key", record.key());
        line.put("value", record.value());
        try {
            out.write(JSON.writeValueAsString(line) + "\n");
            out.flush();
        } catch (IOException error) {
            throw new IllegalStateException("cannot write a record", error);
        }
    }
}
