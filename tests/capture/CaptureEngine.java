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
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * One run of a Debezium engine that appends every record to a file, a JSON object a line.
 *
 * <p>Arguments: the properties of the engine, the file of records. Two properties are this program's own:
 * {@code capture.flush.every}, the number of records after which offsets are flushed (what lies behind it is
 * redelivered after a crash), {@code capture.pause.ms}, a pause after each record, which leaves time to
 * kill the engine inside a transaction, and {@code capture.kafka}, the servers of a Kafka that gets every record too, before
 * it counts as processed; each topic has three partitions there. Stops cleanly on SIGTERM; exits with 1 when the engine fails.
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

        String servers = (String) settings.remove("capture.kafka");
        Topics topics = servers.isEmpty() ? null : new Topics(servers);

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
                        if (topics != null) {
                            topics.send(record);
                        }
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

    /** Writes records to Kafka, one after the other. */
    private static class Topics {
        private final Admin admin;
        private final KafkaProducer<String, String> producer;
        private final Set<String> known = new HashSet<>();

        Topics(String servers) {
            admin = Admin.create(Map.of("bootstrap.servers", servers));
            producer = new KafkaProducer<>(Map.of("bootstrap.servers", servers), new StringSerializer(), new StringSerializer());
        }

        void send(ChangeEvent<String, String> record) throws InterruptedException {
            if (known.add(record.destination())) {
                create(record.destination());
            }
            var message = new ProducerRecord<>(record.destination(), record.key(), record.value());
            for (Header<?> header : record.<String>headers()) {
                String value = (String) header.getValue();
                message.headers().add(header.getKey(), value == null ? null : value.getBytes(StandardCharsets.UTF_8));
            }
            try {
                producer.send(message).get();
            } catch (ExecutionException error) {
                throw new IllegalStateException("cannot send a record", error);
            }
        }

        private void create(String topic) throws InterruptedException {
            try {
                admin.createTopics(List.of(new NewTopic(topic, Optional.of(3), Optional.empty()))).all().get();
            } catch (ExecutionException error) {
                if (!(error.getCause() instanceof TopicExistsException)) {
                    throw new IllegalStateException("cannot create a topic", error);
                }
            }
        }
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
