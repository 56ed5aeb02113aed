import java.net.Authenticator;
import java.net.PasswordAuthentication;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.Base64;
import java.util.regex.Pattern;

/**
 * Calls the interface with the HttpClient of the JDK; prints a line for each step.
 * The client authenticates when challenged, so the challenge must be valid.
 */
public class Smoke {
    private static final Pattern WORD = Pattern.compile("\"(?:error|message|source)\":\"(\\w+)\"");
    private static final String PATH = System.getenv("BASE") + "/api/v1/configure/configure-webhook";
    private static final String URL = System.getenv("RECEIVER");
    private static final String[] CLIENT = System.getenv("CLIENT").split(":", 2);

    private static final HttpClient CHALLENGED = HttpClient.newBuilder().authenticator(new Authenticator() {
        @Override
        protected PasswordAuthentication getPasswordAuthentication() {
            return new PasswordAuthentication(CLIENT[0], CLIENT[1].toCharArray());
        }
    }).build();

    private static void show(HttpClient client, HttpRequest.Builder request) throws Exception {
        var response = client.send(request.timeout(Duration.ofSeconds(30)).build(), BodyHandlers.ofString());
        var word = WORD.matcher(response.body());
        System.out.println(response.statusCode() + " " + (word.find() ? word.group(1) : "?"));
    }

    private static HttpRequest.Builder at(String suffix) {
        return HttpRequest.newBuilder(URI.create(PATH + suffix));
    }

    private static HttpRequest.Builder set(String body) {
        return at("").header("Content-Type", "application/json").POST(BodyPublishers.ofString(body));
    }

    public static void main(String[] args) throws Exception {
        show(CHALLENGED, set("{\"endpoint_id\":\"e1\",\"webhook_url\":\"" + URL + "\"}"));
        show(CHALLENGED, at("/e1"));
        show(CHALLENGED, at("/e1").DELETE());
        show(CHALLENGED, set("{\"webhook_url\":\"" + URL + "\"}"));
        show(CHALLENGED, at("").DELETE());
        show(CHALLENGED, set("{\"endpoint_id\":null,\"webhook_url\":\"" + URL + "\"}"));
        // After three challenges the client throws, so these credentials are sent preemptively.
        var wrong = Base64.getEncoder().encodeToString((CLIENT[0] + ":wrong").getBytes());
        show(HttpClient.newHttpClient(), at("").header("Authorization", "Basic " + wrong).DELETE());
        show(CHALLENGED, set("{\"endpoint_id\":\"e9\",\"webhook_url\":\"" + URL + "\"}"));
    }
}
